// Queries: of one key, and of a column.
#include <algorithm>
#include <cstring>
#include <shared_mutex>
#include <span>
#include <vector>

#include "c/digests.h"
#include "column.h"
#include "filter.h"

namespace perhaps::python {
namespace {

// One byte for each bit.
void spread(const std::uint64_t* bits, std::size_t count, char* out) noexcept {
  std::size_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const std::uint64_t word = bits[i / 64];
    for (unsigned byte = 0; byte < 8; ++byte) {
      // The eight bits, each copied to a byte of its own: bit k is the lowest of byte k after the shift.
      std::uint64_t eight = (word >> 8 * byte & 0xff) * 0x0101010101010101u & 0x8040201008040201u;
      eight = (eight + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
      eight = __builtin_bswap64(eight);
#endif
      std::memcpy(out + i + 8 * byte, &eight, 8);
    }
  }
  for (; i < count; ++i) out[i] = static_cast<char>(bits[i / 64] >> i % 64 & 1);
}

// Of `count` keys from the one at `from` on.
perhaps_status query(const perhaps_filter& filter, const Run& run, std::size_t from, std::size_t count,
                     std::uint64_t* answers) {
  switch (run.of()) {
    case Run::Of::bytes:
      return perhaps_query(&filter, run.keys() + from, count, answers);
    case Run::Of::numbers:
      return perhaps_query_integers(&filter, run.numbers() + from, count, answers);
    case Run::Of::digests:
      query_digests(filter, std::span(run.numbers() + from, count), answers);
      return PERHAPS_OK;
  }
  return PERHAPS_INTERNAL;
}

}  // namespace

int filter_contains(PyObject* self, PyObject* object) {
  State* const state = made(self);
  Key key;
  if (state == nullptr || !key_of(object, key)) return -1;
  std::uint64_t answer = 0;
  perhaps_status status = PERHAPS_OK;
  {
    const Reading reading(*state);
    status = key.is_number ? perhaps_query_integers(state->filter, &key.number, 1, &answer)
                           : perhaps_query(state->filter, &key.bytes, 1, &answer);
  }
  if (status == PERHAPS_OK) return static_cast<int>(answer);
  raise(status);
  return -1;
}

PyObject* filter_contains_column(PyObject* self, PyObject* column) {
  State* const state = made(self);
  if (state == nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    // The room for all answers, if the column knows its length; an iterable's grows by halves.
    const Py_ssize_t length = PyList_CheckExact(column) ? PyList_Size(column) : 0;
    Ref answers(PyByteArray_FromStringAndSize(nullptr, length));
    if (!answers) return nullptr;
    std::size_t at = 0;
    std::vector<std::uint64_t> bits(kRun / 64);
    const auto hasher = hasher_of(*state->filter);
    const bool done = for_each_run(column, {.hasher = hasher ? &*hasher : nullptr}, [&](const Run& run) {
      const auto needed = static_cast<Py_ssize_t>(at + run.size());
      const Py_ssize_t room = PyByteArray_Size(answers.get());
      if (needed > room && PyByteArray_Resize(answers.get(), at == 0 ? needed : needed + needed / 2) != 0) return false;
      char* const out = PyByteArray_AsString(answers.get()) + at;
      perhaps_status status = PERHAPS_OK;
      {
        const NoGil others;
        const std::shared_lock reading(state->lock);
        // Answers stay in the cache until they are spread; the kernels look far enough ahead within a run.
        constexpr std::size_t kPart = std::size_t{1} << 16;
        bits.resize(std::min(run.size(), kPart) / 64 + 1);
        for (std::size_t from = 0; from < run.size() && status == PERHAPS_OK; from += kPart) {
          const std::size_t count = std::min(kPart, run.size() - from);
          status = query(*state->filter, run, from, count, bits.data());
          if (status == PERHAPS_OK) spread(bits.data(), count, out + from);
        }
      }
      at += run.size();
      if (status != PERHAPS_OK) raise(status);
      return status == PERHAPS_OK;
    });
    if (!done || PyByteArray_Resize(answers.get(), static_cast<Py_ssize_t>(at)) != 0) return nullptr;
    return answers.release();
  });
}

}  // namespace perhaps::python
