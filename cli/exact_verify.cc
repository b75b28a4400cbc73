#include "exact_verify.h"

#include <algorithm>
#include <array>

#include "command.h"
#include "exact_keys.h"
#include "json.h"
#include "keys.h"
#include "print.h"
#include "progress.h"

namespace perhaps::cli {
namespace verify_exactly {
namespace {

// Members are told apart by 128 bits of hashes that the set does not use: a collision in the set shows.
using Identity = std::pair<std::uint64_t, std::uint64_t>;
constexpr Hash kFirst{0x7665726966790001u};
constexpr Hash kSecond{0x7665726966790002u};
Identity identity_of(Bytes key) noexcept { return {kFirst(key).value, kSecond(key).value}; }

std::string text_of(Bytes key, KeysAs as) {
  if (as == KeysAs::u64) return std::to_string(load_little_endian<std::uint64_t>(key.data()));
  return {reinterpret_cast<const char*>(key.data()), std::min<std::size_t>(key.size(), 60)};
}

struct Wrong {
  std::uint64_t count = 0;
  std::vector<std::string> first{};

  void add(std::string key) {
    ++count;
    if (first.size() < 5) first.push_back(std::move(key));
  }
  void say_all(const char* what) const {
    for (const std::string& key : first) say(what, key);
    if (count > first.size()) say(what, fmt::format("and {} more", grouped(count - first.size())));
  }
};

// use(key, answer) for all keys.
template <class Use>
std::uint64_t ask_all(const AnyFilter& filter, const KeyOptions& options, const char* label, Use use) {
  Keys keys(options);
  Progress progress(label, keys.stored_bytes());
  std::array<std::uint64_t, Parser::kColumn / 64> answers;
  std::uint64_t count = 0;
  keys.for_each(progress, [&](const Batch& batch, const Source*) {
    query(filter, options.as, batch.keys, answers);
    for (std::size_t i = 0; i < batch.keys.size(); ++i) {
      use(batch.keys[i], (answers[i / 64] >> (i % 64) & 1) != 0);
    }
    count += batch.keys.size();
    return true;
  });
  return count;
}

}  // namespace
}  // namespace verify_exactly

int verify_exact(const AnyFilter& filter, const std::string& name, const KeyOptions& keys, const ExactLists& lists,
                 bool json) {
  using namespace verify_exactly;
  std::vector<Identity> members;
  Wrong out_of_members;
  const KeyOptions member_keys = keys_in(keys, lists.members);
  const std::uint64_t members_read = ask_all(filter, member_keys, "members", [&](Bytes key, bool in) {
    members.push_back(identity_of(key));
    if (!in) out_of_members.add(text_of(key, keys.as));
  });
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  Wrong in_of_others;
  const KeyOptions universe_keys = keys_in(keys, lists.universe);
  std::uint64_t others = 0;
  const std::uint64_t universe_read = ask_all(filter, universe_keys, "universe", [&](Bytes key, bool in) {
    const bool member = std::binary_search(members.begin(), members.end(), identity_of(key));
    others += !member;
    // A member that is out was counted above.
    if (!member && in) in_of_others.add(text_of(key, keys.as));
  });
  const std::uint64_t errors = out_of_members.count + in_of_others.count;
  if (universe_read == 0) fail("no keys came from --universe: nothing was proved");
  Out out;
  if (json) {
    Json object;
    object.add("members", std::uint64_t{members.size()}).add("members_read", members_read);
    object.add("universe_read", universe_read).add("others", others).add("false_out", out_of_members.count);
    object.add("false_in", in_of_others.count).add("exact", errors == 0);
    out.write(object.text() + "\n");
  } else {
    out.write(bold(name) + "\n");
    out.write(fmt::format("  members   {}: {}\n", grouped(members_read),
                          out_of_members.count == 0 ? "all in" : grouped(out_of_members.count) + " OUT"));
    out.write(fmt::format("  others    {}: {}\n", grouped(others),
                          in_of_others.count == 0 ? "all out" : grouped(in_of_others.count) + " IN"));
  }
  out_of_members.say_all("a member is out");
  in_of_others.say_all("no member, but in");
  return errors == 0 ? kYes : kNo;
}

}  // namespace perhaps::cli
