#include "redis/server.h"

#include <array>
#include <charconv>
#include <limits>

namespace perhaps::redis {
bool Call::is(int i, std::string_view upper_case) const noexcept {
  const Bytes word = bytes(i);
  if (word.size() != upper_case.size()) return false;
  for (std::size_t at = 0; at < word.size(); ++at) {
    const auto c = std::to_integer<unsigned char>(word[at]);
    if ((c >= 'a' && c <= 'z' ? c - 32 : c) != static_cast<unsigned char>(upper_case[at])) return false;
  }
  return true;
}

char Call::letter(int i, std::size_t at) const noexcept {
  const Bytes word = bytes(i);
  if (at >= word.size()) return 0;
  const auto c = std::to_integer<char>(word[at]);
  return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

std::string text_of(double value) {
  std::array<char, 40> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

// ------------------------------------------------------------------------------------------------------- settings

namespace {

struct Setting {
  const char* name;      // on Redis 8; null: bf.<prefixed> everywhere
  const char* prefixed;  // elsewhere it is bf.<this>
  const char* argument;  // of loadmodule, in RedisBloom 2
  long long Settings::*count;
  double Settings::*rate;
  bool Settings::*flag;
  long long least;
  long long most;
  unsigned flags = 0;
  const char* no = "no";  // the words of a flag
  const char* yes = "yes";
  String* shown = nullptr;

  const char* own_name() const noexcept { return name != nullptr ? name : prefixed; }
};

constexpr long long kMax = std::numeric_limits<long long>::max();

std::array kSettings = {
    Setting{"bf-error-rate", "error-rate", "ERROR_RATE", nullptr, &Settings::bf_error_rate, nullptr, 0, 1},
    Setting{"bf-initial-size", "initial-size", "INITIAL_SIZE", &Settings::bf_initial_size, nullptr, nullptr, 1,
            kMaxCapacity},
    Setting{"bf-expansion-factor", "expansion-factor", nullptr, &Settings::bf_expansion_factor, nullptr, nullptr, 0,
            kMaxExpansion},
    Setting{"bf-max-bytes-per-key", "max-bytes-per-key", nullptr, &Settings::bf_max_bytes_per_key, nullptr, nullptr, 0,
            kMax},
    Setting{"bf-replay-version", "replay-version", nullptr, &Settings::bf_replay_version, nullptr, nullptr, 2, 8},
    Setting{"cf-bucket-size", "cf-bucket-size", nullptr, &Settings::cf_bucket_size, nullptr, nullptr, 1, 255},
    Setting{"cf-initial-size", "cf-initial-size", nullptr, &Settings::cf_initial_size, nullptr, nullptr, 2,
            kMaxCapacity},
    Setting{"cf-max-iterations", "cf-max-iterations", nullptr, &Settings::cf_max_iterations, nullptr, nullptr, 1,
            65535},
    Setting{"cf-expansion-factor", "cf-expansion-factor", nullptr, &Settings::cf_expansion_factor, nullptr, nullptr, 0,
            kMaxExpansion},
    Setting{"cf-max-expansions", "cf-max-expansions", "CF_MAX_EXPANSIONS", &Settings::cf_max_expansions, nullptr,
            nullptr, 1, 65536},
    Setting{"bf-compat", "compat", nullptr, nullptr, nullptr, &Settings::valkey, 0, 1, 0, "redis", "valkey"},
    Setting{nullptr, "bloom-capacity", nullptr, &Settings::bloom_capacity, nullptr, nullptr, 1, kMax},
    Setting{nullptr, "bloom-expansion", nullptr, &Settings::bloom_expansion, nullptr, nullptr, 0, UINT32_MAX},
    Setting{nullptr, "bloom-fp-rate", nullptr, nullptr, &Settings::bloom_fp_rate, nullptr, 0, 1},
    Setting{nullptr, "bloom-tightening-ratio", nullptr, nullptr, &Settings::bloom_tightening_ratio, nullptr, 0, 1},
    Setting{nullptr, "bloom-memory-usage-limit", nullptr, &Settings::bloom_memory_usage_limit, nullptr, nullptr, 0,
            kMax},
    Setting{nullptr, "bloom-use-random-seed", nullptr, nullptr, nullptr, &Settings::bloom_use_random_seed, 0, 1},
    Setting{nullptr, "bloom-defrag-enabled", nullptr, nullptr, nullptr, &Settings::bloom_defrag_enabled, 0, 1},
    Setting{"bf-prefetch", "prefetch", nullptr, nullptr, nullptr, &Settings::prefetch, 0, 1, kConfigHidden},
};

std::string shown(const Setting& setting) {
  if (setting.rate != nullptr) return text_of(settings.*setting.rate);
  if (setting.flag != nullptr) return settings.*setting.flag ? setting.yes : setting.no;
  return std::to_string(settings.*setting.count);
}

// Sets it and returns "", or says what is wrong with the value.
std::string assign(const Setting& setting, const String* value) {
  const std::string name = setting.own_name();
  if (setting.flag != nullptr) {
    std::size_t size = 0;
    const char* const text = api::StringPtrLen(value, &size);
    const std::string_view word(text, size);
    if (word != setting.yes && word != setting.no) return "Invalid value for `" + name + "`";
    settings.*setting.flag = word == setting.yes;
    return {};
  }
  if (setting.rate != nullptr) {
    double rate = 0;
    if (api::StringToDouble(value, &rate) != kOk) return "Invalid value for `" + name + "`";
    if (!(rate > 0 && rate < 1)) return "Value for `" + name + "` must be in the range (0.000000, 1.000000)";
    settings.*setting.rate = setting.name == nullptr ? rate : std::min(rate, kMaxRate);
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
    const bool bare = unprefixed && setting.name != nullptr;
    const unsigned flags = setting.flags | (bare ? kConfigUnprefixed : 0);
    if (api::RegisterStringConfig(context, bare ? setting.name : setting.prefixed, initial.c_str(), flags, get, set,
                                  nullptr, &setting) != kOk) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool read_arguments(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc % 2 != 0) {
    api::Log(context, "warning", "arguments must come in pairs: name value");
    return false;
  }
  for (int i = 0; i < argc; i += 2) {
    bool known = false;
    for (const Setting& setting : kSettings) {
      std::string upper = setting.own_name();
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
  return true;
}

bool register_settings(Context* context) noexcept {
  // Servers before Redis 8 refuse names without the name of the module, and log that.
  const bool modern = api::GetServerVersion != nullptr && api::GetServerVersion() >= 0x080000;
  if (!(modern && register_all(context, true)) && !register_all(context, false)) {
    api::Log(context, "warning", "cannot register the settings");
    return false;
  }
  return api::LoadConfigs(context) == kOk;
}

}  // namespace perhaps::redis
