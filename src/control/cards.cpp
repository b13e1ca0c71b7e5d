// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Cards as operators see them: cordoned ones, quarantines by the node, and what befell each.
#include <fmt/format.h>

#include <algorithm>

#include "control/detail/core_state.hpp"

namespace autodl {

bool ControlCore::State::cordoned(const CardId& card) const {
  const auto found = card_rows.find(card);
  return found != card_rows.end() && found->second.cordoned;
}

void ControlCore::State::card_fact(const char* what, const NodeId& node, const CardId& card,
                                   const RunRow* run, std::string detail) {
  CardFact fact;
  fact.seq = ++card_fact_seq;
  fact.at = now();
  fact.what = what;
  fact.card = card;
  fact.node = node;
  fact.detail = std::move(detail);
  if (run != nullptr) {
    fact.type = run->gpu_type;
    fact.account = run->account;
    fact.instance = run->instance;
    fact.run = run->id;
  } else if (const auto live_node = nodes.find(node); live_node != nodes.end()) {
    for (const auto& seen : live_node->second.observed.cards) {
      if (seen.id == card) fact.type = seen.type;
    }
  }
  batch.card_facts.push_back(std::move(fact));
}

// A quarantine is the node's word, looked at again each time: only its begin and its end are facts.
// What is said of the reason may change from look to look ("512 MiB in use", then 513).
void ControlCore::State::take_cards(const ObservedSet& observed) {
  for (const auto& card : observed.cards) {
    const bool bad = card.health == CardHealth::kQuarantined;
    const auto found = card_rows.find(card.id);
    const bool was_bad = found != card_rows.end() && !found->second.quarantine.empty();
    if (bad == was_bad) continue;
    CardRow& row = card_rows[card.id];
    row.id = card.id;
    const std::string old = row.quarantine;
    row.quarantine = !bad ? "" : card.reason.empty() ? "the node gave no reason" : card.reason;
    row.changed_at = now();
    dirty_cards.insert(card.id);
    card_fact(bad ? "quarantined" : "cleared", observed.node, card.id, nullptr,
              bad ? row.quarantine : "was: " + old);
  }
}

CardView ControlCore::State::view(const NodeId& node, const ObservedCard& card) const {
  CardView out{node, card, {}, {}};
  out.wanted.id = card.id;
  if (const auto row = card_rows.find(card.id); row != card_rows.end()) out.wanted = row->second;
  for (const auto& id : active) {
    const RunRow& run = runs.at(id);
    if (std::find(run.cards.begin(), run.cards.end(), card.id.str()) != run.cards.end()) {
      out.holder = run.instance;
    }
  }
  return out;
}

std::vector<CardView> ControlCore::cards() const {
  std::vector<CardView> out;
  for (const auto& [id, node] : state_->nodes) {
    for (const auto& card : node.observed.cards) out.push_back(state_->view(id, card));
  }
  return out;
}

Result<CardView> ControlCore::cordon_card(const RequestContext& context, const CardId& card,
                                          bool cordoned, std::string_view reason) {
  ADL_TRY_STATUS(check_reason(reason));
  for (const auto& [id, node] : state_->nodes) {
    for (const auto& seen : node.observed.cards) {
      if (seen.id != card) continue;
      CardRow& row = state_->card_rows[card];
      row.id = card;
      if (row.cordoned == cordoned && row.reason == reason) return state_->view(id, seen);
      const std::string before = fmt::format(R"({{"cordoned":{}}})", row.cordoned);
      row.cordoned = cordoned;
      row.reason = cordoned ? std::string(reason) : "";
      row.changed_at = state_->now();
      state_->dirty_cards.insert(card);
      state_->audit(context, {cordoned ? "card.cordon" : "card.uncordon", card.str(), before,
                              fmt::format(R"({{"cordoned":{}}})", cordoned), std::string(reason)});
      state_->card_fact(cordoned ? "cordoned" : "uncordoned", id, card, nullptr,
                        std::string(reason));
      if (!cordoned) state_->schedule();
      return state_->view(id, seen);
    }
  }
  return Error(ErrorKind::kNotFound, "no_such_card",
               fmt::format("no node has a card '{}'", card.str().substr(0, 100)),
               "see `autodl admin card list`");
}

Result<std::vector<CardFact>> ControlCore::card_history(const CardId& card,
                                                        std::optional<std::int64_t> before,
                                                        std::size_t limit) const {
  ADL_TRY(facts, state_->store.card_facts(card, before, std::clamp<std::size_t>(limit, 1, 1'000)));
  const auto now_there = cards();
  const bool known = std::any_of(now_there.begin(), now_there.end(),
                                 [&](const CardView& view) { return view.card.id == card; });
  if (facts.empty() && !known && !before) {
    return Error(ErrorKind::kNotFound, "no_such_card",
                 fmt::format("no node has or had a card '{}'", card.str().substr(0, 100)),
                 "see `autodl admin card list`");
  }
  return facts;
}

// ---- names for images

std::vector<ImageAliasRow> ControlCore::image_aliases() const {
  std::vector<ImageAliasRow> out;
  for (const auto& [alias, row] : state_->image_aliases) {
    if (!row.reference.empty()) out.push_back(row);
  }
  return out;
}

Result<ImageAliasRow> ControlCore::set_image_alias(const RequestContext& context,
                                                   std::string_view alias,
                                                   std::string_view reference,
                                                   std::string_view reason) {
  ADL_TRY_STATUS(check_reason(reason));
  if (!validate_image(alias).ok()) {  // else no request could name it
    return Error(ErrorKind::kInvalid, "bad_alias", fmt::format("'{}' can't name an image", alias),
                 "use letters, digits and . _ - / : @ +, such as lab/pytorch:2.6");
  }
  const auto& entries = state_->catalogue.entries();
  const bool taken = std::any_of(entries.begin(), entries.end(), [&](const CatalogueEntry& entry) {
    return entry.name == alias ||
           std::find(entry.aliases.begin(), entry.aliases.end(), alias) != entry.aliases.end();
  });
  if (taken) {
    return Error(ErrorKind::kConflict, "name_taken",
                 fmt::format("'{}' is a name of the catalogue's", alias), "choose another alias");
  }
  const auto target = state_->image_aliases.find(std::string(reference));
  if (reference == alias ||
      (target != state_->image_aliases.end() && !target->second.reference.empty())) {
    return Error(ErrorKind::kInvalid, "bad_reference",
                 fmt::format("'{}' is an alias itself", reference), "name the image it stands for");
  }
  if (!reference.empty()) {
    ADL_TRY_STATUS(validate_image(reference));
    ADL_TRY_STATUS(state_->catalogue.resolve(reference, 0, {}));
  }
  ImageAliasRow& row = state_->image_aliases[std::string(alias)];
  const std::string before = json_object({{"reference", row.reference}});
  row.alias = std::string(alias);
  row.reference = std::string(reference);
  row.changed_at = state_->now();
  state_->batch.image_aliases.push_back(row);
  state_->audit(context, {"image.alias", row.alias, before,
                          json_object({{"reference", row.reference}}), std::string(reason)});
  return row;
}

}  // namespace autodl
