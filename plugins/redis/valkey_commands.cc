// The grammar, replies and errors of valkey-bloom (bf-compat valkey), and BF.LOAD.
#include "redis/bloom_kinds.h"
#include "redis/commands.h"

namespace perhaps::redis {
namespace bloom {

// As valkey-bloom sends it. Without items the replica makes an empty filter.
void replicate_new(const Call& call, const ValkeyFilter& filter, const Wish& wish, String** items, std::size_t count) {
  const std::string rate = text_of(filter.rate);
  const std::string tightening = text_of(filter.tightening);
  const std::string expansion = std::to_string(filter.expansion);
  const auto* const seed = reinterpret_cast<const char*>(filter.seed().data());
  const char* const grows = filter.fixed() ? "NONSCALING" : "EXPANSION";
  const auto send = [&](const char* format, auto... more) {
    api::Replicate(call.context, "BF.INSERT", format, call.key(), "CAPACITY", wish.capacity, "ERROR", rate.data(),
                   rate.size(), "TIGHTENING", tightening.data(), tightening.size(), "SEED", seed, filter.seed().size(),
                   grows, more...);
  };
  if (filter.fixed() && count == 0) return send("sclcbcbcbc");
  if (filter.fixed()) return send("sclcbcbcbccv", "ITEMS", items, count);
  if (count == 0) return send("sclcbcbcbcc", expansion.c_str());
  send("sclcbcbcbcccv", expansion.c_str(), "ITEMS", items, count);
}

namespace {

constexpr const char* kBadCapacity = "ERR bad capacity";

// Null, or what valkey-bloom replies to the value.
const char* read_rate(const Call& call, int i, double& rate) noexcept {
  if (!call.real(i, rate)) return "ERR bad error rate";
  return rate > 0 && rate < 1 ? nullptr : "ERR (0 < error rate range < 1)";
}
const char* read_capacity(const Call& call, int i, long long& capacity) noexcept {
  if (!call.integer(i, capacity) || capacity < 0) return kBadCapacity;
  return capacity == 0 ? "ERR (capacity should be larger than 0)" : nullptr;
}
const char* read_expansion(const Call& call, int i, long long& expansion) noexcept {
  const bool fits = call.integer(i, expansion) && expansion >= 1 && expansion <= UINT32_MAX;
  return fits ? nullptr : "ERR bad expansion";
}
const char* read_tightening(const Call& call, int i, double& ratio) noexcept {
  if (!call.real(i, ratio)) return "ERR bad tightening ratio";
  return ratio > 0 && ratio < 1 ? nullptr : "ERR (0 < tightening ratio range < 1)";
}
const char* read_seed(const Call& call, int i, Wish& wish) noexcept {
  const Bytes bytes = call.bytes(i);
  if (bytes.size() != sizeof(ValkeyFilter::Seed)) return "ERR invalid seed";
  std::ranges::copy(bytes, wish.seed.emplace().begin());
  return nullptr;
}

}  // namespace

int valkey_reserve(const Call& call) {
  if (call.argc < 4 || call.argc > 6) return call.arity();
  Wish wish;
  const char* error = read_rate(call, 2, wish.rate);
  if (error == nullptr) error = read_capacity(call, 3, wish.capacity);
  if (error == nullptr && call.argc > 4) {
    if (call.argc == 5 && call.is(4, "NONSCALING")) {
      wish.fixed = true;
    } else if (call.argc == 6 && call.is(4, "EXPANSION")) {
      error = read_expansion(call, 5, wish.expansion);
    } else {
      error = "ERROR";
    }
  }
  if (error != nullptr) return call.error(error);
  OpenedKey key(call, kReadKey | kWriteKey);
  if (!key.missing()) return call.error(visit(key, [](auto&) {}) ? kExists : kWrongType);
  const Budget budget(call.context, 0);
  const Valkey* const value = create<Valkey>(wish, budget, key, error);
  if (value == nullptr) return call.error(error);
  replicate_new(call, value->chain, wish, nullptr, 0);
  call.event("bloom.reserve");
  return call.ok();
}

namespace {

// Null, or why a filter cannot grow so far.
const char* cannot_scale(const Call& call, const Wish& wish) noexcept {
  if (wish.fixed || wish.expansion == 0) return "ERR cannot use NONSCALING and VALIDATESCALETO options together";
  if (call.obeyed()) return nullptr;
  ValkeyFilter filter(kServer);
  filter.expansion = static_cast<std::uint32_t>(wish.expansion);
  filter.rate = wish.rate;
  filter.tightening = wish.tightening;
  const Budget budget(call.context, 0);
  const Room room = budget.room();
  Need need;
  std::uint64_t total = 0;
  for (std::uint64_t j = 0; total < static_cast<std::uint64_t>(wish.scales_to); ++j) {
    ValkeyFilter::Link link;
    if (!filter.numbers_of(static_cast<std::uint64_t>(wish.capacity), j, link))
      return "ERR provided VALIDATESCALETO causes false positive to degrade to 0";
    need.add(link.block_bytes());
    if (!room.holds(need) || need.bytes + ValkeyFilter::size_with(j + 1) > room.key)
      return "ERR provided VALIDATESCALETO causes bloom object to exceed memory limit";
    total += link.capacity;
  }
  return nullptr;
}

}  // namespace

int valkey_insert(const Call& call) {
  if (call.argc < 2) return call.arity();
  Wish wish;
  wish.valkey = true;
  Missing missing = Missing::create;
  int first = call.argc;
  const char* error = nullptr;
  for (int i = 2; i < call.argc && first == call.argc && error == nullptr; ++i) {
    if (call.is(i, "ITEMS")) {
      if ((first = i + 1) == call.argc) return call.arity();
    } else if (call.is(i, "NOCREATE")) {
      missing = Missing::error;
    } else if (call.is(i, "NONSCALING")) {
      wish.fixed = true;
    } else {
      const bool known = call.is(i, "ERROR") || call.is(i, "TIGHTENING") || call.is(i, "CAPACITY") ||
                         call.is(i, "SEED") || call.is(i, "EXPANSION") || call.is(i, "VALIDATESCALETO");
      if (!known) return call.error("ERR unknown argument received");
      if (i + 1 == call.argc) return call.arity();
      const int value = i + 1;
      error = call.is(i, "ERROR")        ? read_rate(call, value, wish.rate)
              : call.is(i, "TIGHTENING") ? read_tightening(call, value, wish.tightening)
              : call.is(i, "CAPACITY")   ? read_capacity(call, value, wish.capacity)
              : call.is(i, "SEED")       ? read_seed(call, value, wish)
              : call.is(i, "EXPANSION")  ? read_expansion(call, value, wish.expansion)
                                         : read_capacity(call, value, wish.scales_to);
      ++i;
    }
  }
  if (error == nullptr && wish.scales_to != 0) error = cannot_scale(call, wish);
  return error != nullptr ? call.error(error) : add(call, first, wish, missing, true);
}

namespace {

// Null, or why the data is refused.
const char* decode(Bytes data, ValkeyFilter& filter, Budget& budget) {
  constexpr const char* kDamaged = "ERR bloom object decoding failed";
  if (data.empty()) return kDamaged;
  if (data[0] != std::byte{1}) return "ERR bloom object decoding failed. Unsupported version";
  format::Reader in(data.subspan(1));
  filter.expansion = in.le<std::uint32_t>();
  filter.rate = std::bit_cast<double>(in.le<std::uint64_t>());
  filter.tightening = std::bit_cast<double>(in.le<std::uint64_t>());
  filter.random_seed = in.le<std::uint8_t>() == 1;
  const auto count = in.le<std::uint64_t>();
  if (in.is_short() || count == 0 || count > ValkeyFilter::kMaxLinks) return kDamaged;
  if (const char* const wrong = filter.check_numbers()) return wrong;
  struct Part {
    Bytes block;
    ValkeyFilter::Link link;
  };
  std::vector<Part> parts(count);
  Need need;
  for (Part& part : parts) {
    part.block = in.take(in.le<std::uint64_t>());
    part.link.items = in.le<std::uint64_t>();
    part.link.capacity = in.le<std::uint64_t>();
    if (in.is_short()) return kDamaged;
    need.add(part.block.size());
  }
  if (!in.rest().empty()) return kDamaged;
  if (!budget.reserve(need)) return kOverLimit;
  for (Part& part : parts) {
    if (!filter.parse_block(part.block, part.link)) return kDamaged;
    if (!filter.append(part.link)) return budget.refused() ? kOverLimit : kNoMemoryToCreate;
    std::ranges::copy(part.block.subspan(ValkeyFilter::kBlockHeader), filter.newest().bits());
  }
  return nullptr;
}

}  // namespace

}  // namespace bloom

// BF.LOAD key data: what valkey-bloom writes when it rewrites its append-only file.
int bf_load(Context* context, String** argv, int argc) noexcept {
  using namespace bloom;
  const Call call{context, argv, argc};
  if (argc != 3) return call.arity();
  OpenedKey key(call, kReadKey | kWriteKey);
  if (!key.missing()) {
    const bool ours = visit(key, [](auto&) {});
    return call.error(ours ? "BUSYKEY Target key name already exists." : kWrongType);
  }
  Budget budget(context, 0);
  Owned<Valkey> value(Valkey::make());
  const char* const error = value == nullptr ? (budget.refused() ? kOverLimit : kNoMemoryToCreate)
                                             : decode(call.bytes(2), value->chain, budget);
  if (error != nullptr) {
    refusals.bad_data += !budget.refused();
    return call.error(error);
  }
  value->settle();
  key.set(value.release());
  api::ReplicateVerbatim(context);
  call.event("bloom.load");
  return call.ok();
}

}  // namespace perhaps::redis
