// SPDX-FileCopyrightText: 2026 The autodl authors
// SPDX-License-Identifier: Apache-2.0
// Uploads: open a ticket, send parts in order, complete. The bytes go straight from the client's
// connection to the file worker, which checks each part's hash before it keeps it.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "control/api/file_access.hpp"
#include "control/api/query_values.hpp"
#include "wire/api_json.hpp"

namespace autodl {
namespace {

constexpr std::int64_t kNanosPerMilli = 1'000'000;
constexpr std::size_t kPieceBytes = 256 * 1024;

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<api::TransferRequest> read_request(const http::Request& request) {
  ADL_TRY(body, api::from_json<api::TransferRequest>(request.body));
  ADL_TRY_STATUS(check_file_path(body.path));
  if (!is_sha256(body.sha256))
    return Error(ErrorKind::kInvalid, "bad_field", "'/sha256' must be 64 lower-case hex digits");
  return body;
}

PutBegin put_begin_of(const Ticket& ticket) {
  PutBegin begin;
  begin.ticket = ticket.id;
  begin.path = ticket.file.path;
  begin.size = ticket.file.size;
  begin.mode = static_cast<std::uint32_t>(ticket.file.mode);
  begin.mtime_ns = ticket.file.mtime_ms.value_or(0) * kNanosPerMilli;
  return begin;
}

// Frees the ticket for the next part, also where the handler's task is destroyed.
class Busy {
 public:
  Busy(Tickets& tickets, std::string id) : tickets_(tickets), id_(std::move(id)) {
    if (auto* ticket = tickets_.find(id_)) ticket->busy = true;
  }
  ~Busy() {
    if (auto* ticket = tickets_.find(id_)) ticket->busy = false;
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  Tickets& tickets_;
  std::string id_;
};

// A worker with this ticket's part file open.
struct OpenPart {
  std::unique_ptr<FileLoan> worker;
  std::int64_t received = 0;
};

Task<Result<OpenPart>> open_part(Api* api, InstanceId instance, PutBegin begin) {
  auto worker = co_await borrow_worker(api, std::move(instance));
  if (!worker.ok()) co_return worker.error();
  auto received = co_await (**worker)->put_begin(std::move(begin));
  if (!received.ok()) {
    (*worker)->look_at(received.error());
    co_return received.error();
  }
  OpenPart part;
  part.worker = std::move(*worker);
  part.received = received->received;
  co_return part;
}

Task<void> open_transfer(Api* api, http::Exchange& exchange) {
  const auto caller = co_await api->signed_in(exchange, BodySigning::kWhole);
  if (!caller) co_return;
  const auto file = read_request(exchange.request());
  if (!file.ok()) {
    co_await api->fail(exchange, file.error());
    co_return;
  }
  auto instance =
      co_await instance_with_files(api, caller->account, exchange.request().param("id"));
  if (!instance.ok()) {
    co_await api->fail(exchange, instance.error());
    co_return;
  }
  const auto id = api->tickets.open(caller->account, *instance, *file);
  if (!id.ok()) {
    co_await api->fail(exchange, id.error());
    co_return;
  }
  const auto part = co_await open_part(api, *instance, put_begin_of(*api->tickets.find(*id)));
  if (!part.ok()) {
    api->tickets.close(*id);
    co_await api->fail(exchange, part.error());
    co_return;
  }
  const api::Transfer answer{*id, kPartBytesMax, part->received};
  std::ignore = co_await exchange.send(json_response(201, api::to_json(answer)));
}

// The ticket that the request names; the failure was answered where there is none.
Task<Ticket*> ticket_of(Api* api, http::Exchange& exchange, BodySigning signing) {
  const auto caller = co_await api->signed_in(exchange, signing);
  if (!caller) co_return nullptr;
  const auto& request = exchange.request();
  auto instance = co_await instance_with_files(api, caller->account, request.param("id"));
  if (!instance.ok()) {
    co_await api->fail(exchange, instance.error());
    co_return nullptr;
  }
  const auto id = api->tickets.check(caller->account, *instance, request.param("ticket"));
  if (!id.ok()) {
    co_await api->fail(exchange, id.error());
    co_return nullptr;
  }
  Ticket* ticket = api->tickets.find(*id);
  if (!ticket->busy) co_return ticket;
  const Error busy(ErrorKind::kConflict, "transfer_busy", "another request works on this upload",
                   "send one part at a time; try again");
  co_await api->fail(exchange, busy);
  co_return nullptr;
}

// The part that the request announces, checked against the ticket.
Result<PutPart> read_part(const http::Request& request, const Ticket& ticket) {
  const auto number = parse_number(request.param("n"));
  const std::int64_t size = ticket.file.size;
  if (!number || *number < 0 || *number > size / kPartBytesMax || *number * kPartBytesMax >= size)
    return Error(ErrorKind::kInvalid, "bad_part",
                 fmt::format("a file of {} bytes has no such part", size));
  PutPart part;
  part.offset = *number * kPartBytesMax;
  part.length = std::min(kPartBytesMax, size - part.offset);
  part.sha256 = std::string(request.headers.get("X-Autodl-Part-SHA256"));
  if (!is_sha256(part.sha256))
    return Error(ErrorKind::kInvalid, "bad_part",
                 "X-Autodl-Part-SHA256 must be the part's hash, 64 lower-case hex digits");
  const auto length = parse_number(request.headers.get("Content-Length"));
  if (!length)
    return Error(ErrorKind::kInvalid, "length_required", "a part needs a Content-Length");
  if (*length != part.length)
    return Error(ErrorKind::kInvalid, "bad_part",
                 fmt::format("part {} has {} bytes, not {}", *number, part.length, *length));
  return part;
}

// Hands the body over to the worker. An error leaves the worker in the middle of a part.
Task<Status> pass_on(http::Exchange& exchange, FileClient* worker, std::int64_t length) {
  std::vector<char> piece(kPieceBytes);
  while (length > 0) {
    const auto got = co_await exchange.read_body(piece);
    if (!got.ok()) co_return got.error();
    if (*got == 0) co_return Error(ErrorKind::kInvalid, "bad_part", "the part ends too early");
    const auto sent = co_await worker->part_data({piece.data(), *got});
    if (!sent.ok()) co_return sent.error();
    length -= static_cast<std::int64_t>(*got);
  }
  co_return Status{};
}

Task<Result<Received>> receive_part(Api* api, http::Exchange& exchange, PutPart part,
                                    InstanceId instance, PutBegin begin) {
  auto open = co_await open_part(api, std::move(instance), std::move(begin));
  if (!open.ok()) co_return open.error();
  const auto length = part.length;
  FileLoan& worker = *open->worker;
  const auto begun = co_await worker->begin_part(std::move(part));
  if (!begun.ok()) {
    worker.broken();
    co_return begun.error();
  }
  const auto passed = co_await pass_on(exchange, &*worker, length);
  if (!passed.ok()) {
    worker.broken();
    co_return passed.error();
  }
  auto received = co_await worker->finish_part();
  if (!received.ok()) worker.look_at(received.error());
  co_return received;
}

Task<void> put_part(Api* api, http::Exchange& exchange) {
  Ticket* ticket = co_await ticket_of(api, exchange, BodySigning::kUnsigned);
  if (ticket == nullptr) co_return;
  const auto part = read_part(exchange.request(), *ticket);
  if (!part.ok()) {
    co_await api->fail(exchange, part.error());
    co_return;
  }
  const Busy busy(api->tickets, ticket->id);
  const auto received =
      co_await receive_part(api, exchange, *part, ticket->instance, put_begin_of(*ticket));
  if (!received.ok()) {
    co_await api->fail(exchange, received.error());
    co_return;
  }
  const api::TransferProgress answer{received->received};
  std::ignore = co_await exchange.send(json_response(200, api::to_json(answer)));
}

Task<Result<FileStat>> commit(Api* api, InstanceId instance, PutBegin begin, std::string sha256) {
  auto open = co_await open_part(api, std::move(instance), std::move(begin));
  if (!open.ok()) co_return open.error();
  PutCommit message;
  message.sha256 = std::move(sha256);
  FileLoan& worker = *open->worker;
  auto stat = co_await worker->put_commit(std::move(message));
  if (!stat.ok()) worker.look_at(stat.error());
  co_return stat;
}

Task<void> complete(Api* api, http::Exchange& exchange) {
  Ticket* found = co_await ticket_of(api, exchange, BodySigning::kWhole);
  if (found == nullptr) co_return;
  const Ticket ticket = *found;
  const api::TransferResult answer{ticket.file.path, ticket.file.size, ticket.file.sha256};
  {
    const Busy busy(api->tickets, ticket.id);
    const auto stat =
        co_await commit(api, ticket.instance, put_begin_of(ticket), ticket.file.sha256);
    if (!stat.ok()) {
      co_await api->fail(exchange, stat.error());
      co_return;
    }
  }
  api->tickets.close(ticket.id);
  auto note = [ticket, data = api::to_json(answer),
               id = exchange.request().request_id](ControlCore& core) {
    RequestContext context;
    context.request_id = id;
    return core.note(context, ticket.account, ticket.instance.str(), "uploaded", data,
                     "uploaded " + ticket.file.path);
  };
  std::ignore = co_await api->runner.run(std::move(note));
  std::ignore = co_await exchange.send(json_response(200, api::to_json(answer)));
}

Task<void> drop(Api* api, http::Exchange& exchange) {
  Ticket* found = co_await ticket_of(api, exchange, BodySigning::kWhole);
  if (found == nullptr) co_return;
  const Ticket ticket = *found;
  auto worker = co_await borrow_worker(api, ticket.instance);
  if (!worker.ok()) {
    co_await api->fail(exchange, worker.error());
    co_return;
  }
  PutAbort message;
  message.ticket = ticket.id;
  message.path = ticket.file.path;
  const auto dropped = co_await (**worker)->put_abort(std::move(message));
  if (!dropped.ok()) {
    (*worker)->look_at(dropped.error());
    co_await api->fail(exchange, dropped.error());
    co_return;
  }
  api->tickets.close(ticket.id);
  http::Response response;
  response.status = 204;
  std::ignore = co_await exchange.send(std::move(response));
}

}  // namespace

void add_transfer_routes(http::Router& router, Api& api) {
  const std::string base = "/api/v1/instances/{id}/transfers";
  add_handler(router, api, "POST", base, open_transfer,
              About("openTransfer", "files", "Begin an upload, or go on with one that broke off")
                  .takes<api::TransferRequest>()
                  .answers<api::Transfer>(201, "The ticket, and how much is there already")
                  .refuses({403, 404, 409, 422}));
  add_handler(
      router, api, "PUT", base + "/{ticket}/parts/{n}", put_part,
      About("putPart", "files", "The next part of an upload")
          .says("Part n starts at n × `part_bytes`; parts come in order, and one that is "
                "repeated is accepted. A signed request may say UNSIGNED-PAYLOAD.")
          .header("X-Autodl-Part-SHA256", pattern_schema("^[0-9a-f]{64}$"), "hash of the part")
          .takes_bytes()
          .answers<api::TransferProgress>(200, "How much is there now")
          .refuses({404, 409, 411, 422})
          .rarely(507, "only where the instance's disk is full"),
      http::BodyMode::kStreamed, static_cast<std::size_t>(kPartBytesMax));
  add_handler(router, api, "POST", base + "/{ticket}/complete", complete,
              About("completeTransfer", "files", "Check the whole file and put it in its place")
                  .takes<api::NoMembers>(false)
                  .answers<api::TransferResult>(200, "The file is there")
                  .refuses({404, 409, 422}));
  add_handler(router, api, "DELETE", base + "/{ticket}", drop,
              About("dropTransfer", "files", "Drop an upload")
                  .answers_empty(204, "It is gone")
                  .refuses({404, 409}));
}

}  // namespace autodl
