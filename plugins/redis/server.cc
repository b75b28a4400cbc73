#include "redis/server.h"

#include <array>
#include <charconv>
#include <cstring>
#include <limits>

namespace perhaps::redis {
namespace {

Budget* budget = nullptr;

// Below this the server's own check (deny-oom) is near enough, and to ask it for its memory would cost more than the
// table.
constexpr std::uint64_t kSmall = std::uint64_t{1} << 20;

std::uint64_t free_bytes(Context* context) noexcept {
  ServerInfo* const info = api::GetServerInfo(context, "memory");
  const auto field = [&](const char* name) {
    int error = 0;
    const unsigned long long value = api::ServerInfoGetFieldUnsigned(info, name, &error);
    return error == kOk ? std::uint64_t{value} : 0;
  };
  const std::uint64_t most = field("maxmemory") != 0 ? field("maxmemory") : field("total_system_memory");
  const std::uint64_t used = field("used_memory");
  api::FreeServerInfo(context, info);
  return most > used ? most - used : 0;
}

}  // namespace

const redisbloom::Memory kServer{
    .take = [](std::uint64_t bytes) noexcept -> std::byte* {
      if (budget != nullptr && !budget->grants(bytes)) return nullptr;
      if (api::TryCalloc != nullptr) return static_cast<std::byte*>(api::TryCalloc(1, bytes));
      void* const at = api::TryAlloc(bytes);
      if (at != nullptr) std::memset(at, 0, bytes);
      return static_cast<std::byte*>(at);
    },
    .give = [](std::byte* at) noexcept { api::Free(at); },
};

Budget::Budget(Context* context, std::uint64_t bytes_in_use) noexcept : context_(context), in_use_(bytes_in_use) {
  budget = this;
}
Budget::~Budget() { budget = nullptr; }

std::uint64_t Budget::left() const noexcept {
  const auto most = static_cast<std::uint64_t>(settings.bf_max_bytes_per_key);
  return most == 0 ? free_bytes(context_) : most - std::min(most, in_use_);
}

bool Budget::grants(std::uint64_t bytes) noexcept {
  if ((api::GetContextFlags(context_) & (kReplicated | kLoading)) != 0) return true;
  const bool granted = (settings.bf_max_bytes_per_key == 0 && bytes <= kSmall) || bytes <= left();
  in_use_ += granted ? bytes : 0;
  refused_ |= !granted;
  return granted;
}

bool Call::is(int i, std::string_view upper_case) const noexcept {
  const Bytes word = bytes(i);
  if (word.size() != upper_case.size()) return false;
  for (std::size_t at = 0; at < word.size(); ++at) {
    const auto c = std::to_integer<unsigned char>(word[at]);
    if ((c >= 'a' && c <= 'z' ? c - 32 : c) != static_cast<unsigned char>(upper_case[at])) return false;
  }
  return true;
}

std::string text_of(double value) {
  std::array<char, 40> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

// ------------------------------------------------------------------------------------------------------- settings

namespace {

struct Setting {
  const char* name;      // on Redis 8
  const char* prefixed;  // elsewhere it is bf.<this>
  const char* argument;  // of loadmodule, in RedisBloom 2
  long long Settings::*count;
  double Settings::*rate;
  bool Settings::*flag;
  long long least;
  long long most;
  unsigned flags = 0;
  String* shown = nullptr;
};

constexpr long long kMax = std::numeric_limits<long long>::max();

std::array kSettings = {
    Setting{"bf-error-rate", "error-rate", "ERROR_RATE", nullptr, &Settings::bf_error_rate, nullptr, 0, 1},
    Setting{"bf-initial-size", "initial-size", "INITIAL_SIZE", &Settings::bf_initial_size, nullptr, nullptr, 1,
            kMostCapacity},
    Setting{"bf-expansion-factor", "expansion-factor", nullptr, &Settings::bf_expansion_factor, nullptr, nullptr, 0,
            kMostExpansion},
    Setting{"bf-max-bytes-per-key", "max-bytes-per-key", nullptr, &Settings::bf_max_bytes_per_key, nullptr, nullptr, 0,
            kMax},
    Setting{"cf-bucket-size", "cf-bucket-size", nullptr, &Settings::cf_bucket_size, nullptr, nullptr, 1, 255},
    Setting{"cf-initial-size", "cf-initial-size", nullptr, &Settings::cf_initial_size, nullptr, nullptr, 2,
            kMostCapacity},
    Setting{"cf-max-iterations", "cf-max-iterations", nullptr, &Settings::cf_max_iterations, nullptr, nullptr, 1,
            65535},
    Setting{"cf-expansion-factor", "cf-expansion-factor", nullptr, &Settings::cf_expansion_factor, nullptr, nullptr, 0,
            kMostExpansion},
    Setting{"cf-max-expansions", "cf-max-expansions", "CF_MAX_EXPANSIONS", &Settings::cf_max_expansions, nullptr,
            nullptr, 1, 65536},
    Setting{"bf-clock", "clock", nullptr, &Settings::bf_clock, nullptr, nullptr, 0, kMax, kConfigHidden},
    Setting{"bf-prefetch", "prefetch", nullptr, nullptr, nullptr, &Settings::prefetch, 0, 1, kConfigHidden},
};

std::string shown(const Setting& setting) {
  if (setting.rate != nullptr) return text_of(settings.*setting.rate);
  if (setting.flag != nullptr) return settings.*setting.flag ? "yes" : "no";
  return std::to_string(settings.*setting.count);
}

// Empty: it is set. Else what is wrong with the value.
std::string assign(const Setting& setting, const String* value) {
  const std::string name = setting.name;
  if (setting.flag != nullptr) {
    std::size_t size = 0;
    const char* const text = api::StringPtrLen(value, &size);
    const std::string_view word(text, size);
    if (word != "yes" && word != "no") return "Invalid value for `" + name + "`";
    settings.*setting.flag = word == "yes";
    return {};
  }
  if (setting.rate != nullptr) {
    double rate = 0;
    if (api::StringToDouble(value, &rate) != kOk) return "Invalid value for `" + name + "`";
    if (!(rate > 0 && rate < 1)) return "Value for `" + name + "` must be in the range (0.000000, 1.000000)";
    settings.*setting.rate = std::min(rate, kMostRate);
    return {};
  }
  long long count = 0;
  if (api::StringToLongLong(value, &count) != kOk) return "Invalid value for `" + name + "`";
  long long least = setting.least;
  long long most = setting.most;
  if (setting.count == &Settings::cf_initial_size) least = 2 * settings.cf_bucket_size;
  if (setting.count == &Settings::cf_bucket_size) most = std::min(most, settings.cf_initial_size / 2);
  if (count < least || count > most) {
    return "Value for `" + name + "` must be in the range [" + std::to_string(least) + ", " + std::to_string(most) +
           "]";
  }
  settings.*setting.count = count;
  return {};
}

String* get(const char*, void* data) noexcept {
  Setting& setting = *static_cast<Setting*>(data);
  if (setting.shown != nullptr) api::FreeString(nullptr, setting.shown);
  const std::string text = shown(setting);
  setting.shown = api::CreateString(nullptr, text.data(), text.size());
  return setting.shown;
}

int set(const char*, String* value, void* data, String** error) noexcept {
  const std::string wrong = assign(*static_cast<Setting*>(data), value);
  if (wrong.empty()) return kOk;
  *error = api::CreateString(nullptr, wrong.data(), wrong.size());
  return kError;
}

bool register_all(Context* context, bool unprefixed) noexcept {
  for (Setting& setting : kSettings) {
    const std::string initial = shown(setting);
    const unsigned flags = setting.flags | (unprefixed ? kConfigUnprefixed : 0);
    if (api::RegisterStringConfig(context, unprefixed ? setting.name : setting.prefixed, initial.c_str(), flags, get,
                                  set, nullptr, &setting) != kOk) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool load_settings(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc % 2 != 0) {
    api::Log(context, "warning", "arguments come in pairs: name value");
    return false;
  }
  for (int i = 0; i < argc; i += 2) {
    bool known = false;
    for (const Setting& setting : kSettings) {
      std::string upper = setting.name;
      for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
      if (!call.is(i, upper) && !(setting.argument != nullptr && call.is(i, setting.argument))) continue;
      known = true;
      if (const std::string wrong = assign(setting, argv[i + 1]); !wrong.empty()) {
        api::Log(context, "warning", "%s", wrong.c_str());
        return false;
      }
    }
    if (!known) {
      std::size_t size = 0;
      api::Log(context, "warning", "unknown argument: %s", api::StringPtrLen(argv[i], &size));
      return false;
    }
  }
  // Names without the module's are a flag that older servers refuse, and log that they do.
  const bool modern = api::GetServerVersion != nullptr && api::GetServerVersion() >= 0x080000;
  if (!(modern && register_all(context, true)) && !register_all(context, false)) {
    api::Log(context, "warning", "the settings could not be registered");
    return false;
  }
  return api::LoadConfigs(context) == kOk;
}

}  // namespace perhaps::redis
