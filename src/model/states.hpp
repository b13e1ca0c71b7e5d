// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// The states of an instance, the outcomes of a run and the words users see for them.
#pragma once

#include <optional>
#include <string_view>

namespace autodl {

//             start            card granted         node: ready
//  created ---------> queued -------------> starting ---------> running
//     ^                 | cancel                | failed           | stop, exit, rule, lease over
//     |                 v                       v                  v
//     +--------------- stopped <------------- failed            stopping --> stopped
//  Any state but released --release--> (stop first) --> released.
enum class InstanceState {
  kCreated,   // home node chosen, disk being made; files can be uploaded; storage billed only
  kQueued,    // wants a card
  kStarting,  // card granted; nothing of the tenant executes; at most 60 s
  kRunning,   // the node has journalled ready; billed by the second
  kStopping,  // stop asked or lease over
  kStopped,   // disk kept, cards released
  kFailed,    // start failed, or the platform lost it; disk kept
  kReleased,  // gone; facts kept
};

enum class Outcome {
  kCompleted,    // exit 0, or an instance without command that was stopped
  kFailed,       // exit != 0, or killed
  kRule,         // max_runtime or another rule of the run
  kCancelled,    // the user stopped it
  kLost,         // the platform lost it
  kStartFailed,  // it never ran
};

enum class RestartPolicy { kNever, kOnLoss };

// Who asked for a stop. It decides whether the seconds until the container's end are billed.
enum class StopBy { kUser, kRule, kLease, kPlatform };

std::string_view to_string(InstanceState state);   // "running"
std::string_view to_string(Outcome outcome);       // "completed"
std::string_view to_string(RestartPolicy policy);  // "never", "on-loss"
std::string_view to_string(StopBy by);             // "user"
std::optional<InstanceState> parse_instance_state(std::string_view text);
std::optional<Outcome> parse_outcome(std::string_view text);
std::optional<RestartPolicy> parse_restart_policy(std::string_view text);
std::optional<StopBy> parse_stop_by(std::string_view text);

// The SDK's word: CREATED QUEUED STARTING RUNNING STOPPING STOPPED (one terminal word).
std::string_view status_word(InstanceState state);

}  // namespace autodl
