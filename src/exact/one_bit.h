// The map of an exact set: one bit for each of its words, in a ribbon map (perhaps/ribbon_map.h). The one place that
// knows what it is made of.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "perhaps/exact.h"
#include "perhaps/ribbon_map.h"

namespace perhaps::detail {

// Takes words, each once, with their bits.
class OneBitBuilder {
 public:
  struct Built {
    RibbonMapShape shape;
    Memory table;
  };

  explicit OneBitBuilder(const BuildOptions& options)
      : pipeline_(MapPipeline::make({.value_bits = 1, .check_bits = 0}, options, 1)), lane_(pipeline_->add_lane()) {}

  void add(std::uint64_t word, bool bit) {
    if (count_ == words_.size()) flush();
    words_[count_] = word;
    bits_[count_++] = bit;
  }
  Result<Built> finish() {
    flush();
    Built built;
    auto table = pipeline_->finish(&built.shape);
    if (!table) return std::move(table).error();
    built.table = *std::move(table);
    return built;
  }

 private:
  // If the words cannot be stored, finish() says so.
  void flush() { MapPipeline::add(lane_, words_.data(), bits_.data(), std::exchange(count_, 0)); }

  std::unique_ptr<MapPipeline> pipeline_;
  MapPipeline::Lane& lane_;
  std::array<std::uint64_t, 1024> words_;
  std::array<std::uint64_t, 1024> bits_;
  std::size_t count_ = 0;
};

class OneBit {
 public:
  OneBit() = default;
  static Result<OneBit> over(std::span<const std::uint64_t> numbers, Bytes table) {
    const auto shape = RibbonMapShape::from(numbers);
    if (!shape) return shape.error();
    if (shape->value_bits() != 1 || shape->check_bits != 0) {
      return Error{Errc::bad_parameter, "a map of values that are not one bit"};
    }
    if (table.size() != shape->bytes()) {
      return Error{Errc::bad_parameter, "the map needs " + std::to_string(shape->bytes()) + " bytes, its section has " +
                                            std::to_string(table.size())};
    }
    if (auto fits = RibbonMapLayout::check(*shape, table); !fits) return std::move(fits).error();
    OneBit map;
    map.shape_ = *shape;
    map.table_ = table;
    return map;
  }

  // Bit i % 64 of out[i / 64] is the value of words[i].  REQUIRES: words.size() <= kExactColumn
  void find(std::span<const std::uint64_t> words, std::uint64_t* out) const noexcept {
    std::array<std::uint64_t, kExactColumn> values;
    std::array<std::uint64_t, kExactColumn / kBatch> found;
    RibbonMapLayout::find(shape_, table_.data(),
                          {.words = words.data(), .count = words.size(), .ahead = far_away(table_.size())},
                          values.data(), found.data());
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i % kBatch == 0) out[i / kBatch] = 0;
      out[i / kBatch] |= (values[i] & 1) << (i % kBatch);
    }
  }

 private:
  RibbonMapShape shape_{};
  Bytes table_{};
};

}  // namespace perhaps::detail
