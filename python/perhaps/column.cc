#include "column.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <variant>

namespace perhaps::python {
namespace {

// Without the trailing zeros with which numpy pads its fixed-width texts.
std::size_t unpadded(const char* data, std::size_t size) {
  while (size > 0 && data[size - 1] == 0) --size;
  return size;
}

bool add_utf8(Run& run, const char* data, std::size_t characters) {
  std::vector<std::uint32_t> points(characters);
  std::memcpy(points.data(), data, characters * 4);
  while (!points.empty() && points.back() == 0) points.pop_back();
  std::string text;
  for (const std::uint32_t c : points) {
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
      PyErr_SetString(PyExc_ValueError, "a text of the column has no UTF-8: it contains a lone surrogate");
      return false;
    }
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      text += {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
               static_cast<char>(0x80 | (c & 63))};
    } else {
      text += {static_cast<char>(0xf0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
               static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
    }
  }
  run.add_text(std::move(text));
  return true;
}

template <class Integer>
void add_numbers(Run& run, const char* data, Py_ssize_t count, Py_ssize_t stride) {
  if constexpr (sizeof(Integer) == 8) {
    if (stride == 8 && reinterpret_cast<std::uintptr_t>(data) % alignof(std::uint64_t) == 0) {
      run.add_borrowed(reinterpret_cast<const std::uint64_t*>(data), static_cast<std::size_t>(count));
      return;
    }
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    Integer value;
    std::memcpy(&value, data + i * stride, sizeof value);
    run.add_number(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  }
}

bool add_integers(Run& run, char code, const char* data, Py_ssize_t count, Py_ssize_t stride, Py_ssize_t size) {
  const bool is_signed = std::strchr("bhilqn", code) != nullptr;
  if (!is_signed && std::strchr("BHILQN", code) == nullptr) return false;
  switch (size) {
    case 1:
      is_signed ? add_numbers<std::int8_t>(run, data, count, stride)
                : add_numbers<std::uint8_t>(run, data, count, stride);
      return true;
    case 2:
      is_signed ? add_numbers<std::int16_t>(run, data, count, stride)
                : add_numbers<std::uint16_t>(run, data, count, stride);
      return true;
    case 4:
      is_signed ? add_numbers<std::int32_t>(run, data, count, stride)
                : add_numbers<std::uint32_t>(run, data, count, stride);
      return true;
    case 8:
      add_numbers<std::uint64_t>(run, data, count, stride);
      return true;
    default:
      return false;
  }
}

// A buffer of Python's, given back at the end.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  ~Buffer() {
    if (held_) PyBuffer_Release(&view_);
  }
  bool take(PyObject* object) {
    held_ = PyObject_GetBuffer(object, &view_, PyBUF_FORMAT | PyBUF_STRIDES) == 0;
    return held_;
  }
  const Py_buffer& view() const noexcept { return view_; }

 private:
  Py_buffer view_{};
  bool held_ = false;
};

bool add_buffer(Run& run, const Py_buffer& view) {
  const char* format = view.format == nullptr ? "B" : view.format;
  const char* const given = format;
  if (view.ndim != 1) {
    PyErr_SetString(PyExc_TypeError, "a column of keys has one dimension");
    return false;
  }
  const Py_ssize_t count = view.shape[0];
  const auto* const data = static_cast<const char*>(view.buf);
  const Py_ssize_t stride = view.strides[0];
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  if (*format == '<') ++format;
#else
  if (*format == '>') ++format;
#endif
  if (*format == '@' || *format == '=') ++format;
  if (*format != 0 && format[1] == 0 && *format != 's' && *format != 'w' &&
      add_integers(run, *format, data, count, stride, view.itemsize))
    return true;
  while (*format >= '0' && *format <= '9') ++format;
  if (std::strcmp(format, "s") == 0) {
    run.reserve(static_cast<std::size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i)
      run.add_bytes(data + i * stride, unpadded(data + i * stride, static_cast<std::size_t>(view.itemsize)));
    return true;
  }
  if (std::strcmp(format, "w") == 0) {
    for (Py_ssize_t i = 0; i < count; ++i)
      if (!add_utf8(run, data + i * stride, static_cast<std::size_t>(view.itemsize) / 4)) return false;
    return true;
  }
  PyErr_Format(PyExc_TypeError,
               "a column of keys has integers, texts or bytes of this machine's byte order, not the format '%s'",
               given);
  return false;
}

// A column of Arrow, where it is: https://arrow.apache.org/docs/format/CDataInterface.html
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

bool has_nulls(const ArrowArray& array) {
  const auto* const valid = static_cast<const std::uint8_t*>(array.n_buffers > 0 ? array.buffers[0] : nullptr);
  if (array.null_count == 0 || valid == nullptr) return false;
  for (std::int64_t i = array.offset; i < array.offset + array.length; ++i)
    if ((valid[i / 8] >> i % 8 & 1) == 0) return true;
  return false;
}

template <class Offset>
bool add_arrow_texts(Run& run, const ArrowArray& array) {
  const Offset* const ends = static_cast<const Offset*>(array.buffers[1]) + array.offset;
  const auto* const data = static_cast<const char*>(array.buffers[2]);
  run.reserve(static_cast<std::size_t>(array.length));
  for (std::int64_t i = 0; i < array.length; ++i) {
    if (ends[i] < 0 || ends[i + 1] < ends[i]) {
      PyErr_SetString(PyExc_ValueError, "a column of Arrow whose offsets decrease");
      return false;
    }
    run.add_bytes(data + ends[i], static_cast<std::size_t>(ends[i + 1] - ends[i]));
  }
  return true;
}

bool add_arrow(Run& run, const ArrowSchema& schema, const ArrowArray& array) {
  if (schema.release == nullptr || array.release == nullptr) {
    PyErr_SetString(PyExc_ValueError, "a column of Arrow that was released");
    return false;
  }
  if (has_nulls(array)) {
    PyErr_SetString(PyExc_ValueError, "a column of Arrow with nulls, which are no keys: drop them");
    return false;
  }
  const char type = schema.dictionary == nullptr && schema.format[0] != 0 && schema.format[1] == 0 ? *schema.format : 0;
  const bool is_text = type != 0 && std::strchr("uUzZ", type) != nullptr;
  if (array.length == 0 && is_text) return true;
  if (type == 'u' || type == 'z') return add_arrow_texts<std::int32_t>(run, array);
  if (type == 'U' || type == 'Z') return add_arrow_texts<std::int64_t>(run, array);
  static constexpr char kTheirs[] = "cCsSiIlL";
  static constexpr char kOurs[] = "bBhHiIqQ";
  if (const char* const at = type == 0 ? nullptr : std::strchr(kTheirs, type)) {
    const Py_ssize_t size = 1 << (at - kTheirs) / 2;
    return add_integers(run, kOurs[at - kTheirs], static_cast<const char*>(array.buffers[1]) + array.offset * size,
                        static_cast<Py_ssize_t>(array.length), size, size);
  }
  PyErr_Format(PyExc_TypeError, "a column of keys has integers, texts or bytes, not Arrow's %s'%s'",
               schema.dictionary == nullptr ? "" : "dictionary of ", schema.format);
  return false;
}

// Objects in a row. Those of a list are borrowed, which is enough until other code runs; the list may change then.
class Block {
 public:
  static constexpr std::size_t kSize = 64;

  Block() = default;
  Block(const Block&) = delete;
  ~Block() { clear(); }

  std::size_t size() const noexcept { return size_; }
  PyObject* operator[](std::size_t i) const noexcept { return items_[i]; }
  // Those of a list at from, from + 1 .. end - 1. A text lies in two lines, and texts that were sorted or shuffled
  // anywhere.
  void borrow(PyObject* list, Py_ssize_t from, Py_ssize_t end) noexcept {
    PyObject** to = items_.data();
    for (Py_ssize_t i = from; i < end; ++i) {
      PyObject* const item = PyList_GetItem(list, i);
      __builtin_prefetch(item);
      __builtin_prefetch(reinterpret_cast<const char*>(item) + 64);
      *to++ = item;
    }
    size_ = static_cast<std::size_t>(end - from);
  }
  void take(PyObject* item) noexcept {
    items_[size_++] = item;
    owned_ = true;
  }
  // The item at `i` may run code of its own. If it is borrowed, it has to be alone: false, and the block ends before.
  bool may_run(std::size_t i) noexcept {
    if (owned_) return true;
    if (i == 0) {
      size_ = 1;
      owned_ = true;
      Py_INCREF(items_[0]);
      return true;
    }
    size_ = i;
    return false;
  }
  void clear() noexcept {
    const std::size_t count = std::exchange(size_, 0);
    if (!std::exchange(owned_, false)) return;
    for (std::size_t i = 0; i < count; ++i) Py_DECREF(items_[i]);
  }

 private:
  std::array<PyObject*, kSize> items_;
  std::size_t size_ = 0;
  bool owned_ = false;
};

// Hands over the objects of a column in order. `use` may cut a block: the next one begins there.
template <class Use>
bool for_each_block(PyObject* column, Use use) {
  Block block;
  if (PyList_CheckExact(column)) {
    Py_ssize_t wanted = Block::kSize;  // few after an object that was alone: more of its kind may follow
    for (Py_ssize_t from = 0; from < PyList_Size(column);) {
      const Py_ssize_t end = std::min(PyList_Size(column), from + wanted);
      block.borrow(column, from, end);
      if (!use(block)) return false;
      from += static_cast<Py_ssize_t>(block.size());
      wanted = block.size() == 1 ? 2 : Block::kSize;
      block.clear();
    }
    return true;
  }
  const Ref iterator(PyObject_GetIter(column));
  if (!iterator) return false;
  while (PyObject* const item = PyIter_Next(iterator.get())) {
    block.take(item);
    if (block.size() < Block::kSize) continue;
    if (!use(block)) return false;
    block.clear();
  }
  return PyErr_Occurred() == nullptr && (block.size() == 0 || use(block));
}

// The digests of a block, each key as it is.
class Hashing {
 public:
  explicit Hashing(const AnyHasher& hasher) : hasher_(hasher) {}

  // Puts the digests of the keys of the block, which it may cut, to `digests`; false: an exception is set.
  bool hash(Block& block, std::uint64_t* digests) {
    bytes_ = 0;
    for (std::size_t i = 0; i < block.size();) {
      const std::size_t texts = texts_from(block, i);
      if (texts == kFailed) return false;
      hash_many(hasher_, std::span(keys_).first(texts), std::span(digests + i, texts));
      i += texts;
      const std::size_t numbers = numbers_from(block, i, digests + i);
      if (numbers == kFailed) return false;
      hash_in_place(std::span(digests + i, numbers));
      i += numbers;
      if (texts + numbers != 0) continue;
      if (!PyBytes_CheckExact(block[i]) && !block.may_run(i)) break;
      Key key;
      if (!key_of(block[i], key)) return false;
      if (key.is_number) {
        digests[i] = key.number;
        hash_in_place(std::span(digests + i, 1));
      } else {
        keys_[0] = bytes_of(key.bytes.data, key.bytes.size);
        hash_many(hasher_, std::span(keys_).first(1), std::span(digests + i, 1));
        bytes_ += key.bytes.size;
      }
      ++i;
    }
    return true;
  }
  // Bytes of the texts in the last block.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t kFailed = SIZE_MAX;

  static Bytes bytes_of(const void* data, std::size_t size) noexcept {
    return {static_cast<const std::byte*>(data), size};
  }
  // Collects the texts from the one at `from` on, and returns how many there are. What most columns consist of: nothing
  // but calls of the interpreter and two stores for each.
  std::size_t texts_from(const Block& block, std::size_t from) {
    const std::size_t end = block.size();
    std::size_t bytes = 0;
    std::size_t i = from;
    for (; i < end && PyUnicode_CheckExact(block[i]); ++i) {
      Py_ssize_t size = 0;
      const char* const text = PyUnicode_AsUTF8AndSize(block[i], &size);
      if (text == nullptr) return kFailed;
      keys_[i - from] = bytes_of(text, static_cast<std::size_t>(size));
      bytes += static_cast<std::size_t>(size);
    }
    bytes_ += bytes;
    return i - from;
  }
  static std::size_t numbers_from(const Block& block, std::size_t from, std::uint64_t* numbers) {
    std::size_t i = from;
    for (; i < block.size() && PyLong_CheckExact(block[i]); ++i) {
      if (!number_of(block[i], *numbers++)) return kFailed;
    }
    return i - from;
  }
  void hash_in_place(std::span<std::uint64_t> numbers) const {
    std::visit(
        [&](const auto& hash) {
          for (std::uint64_t& number : numbers) number = digest_of(hash, number).value;
        },
        hasher_);
  }

  const AnyHasher& hasher_;
  std::array<Bytes, Block::kSize> keys_;
  std::size_t bytes_ = 0;
};

bool for_each_hashed_run(PyObject* column, const Objects& objects, const std::function<bool(const Run&)>& use) {
  // Other threads of Python wait while keys are hashed: for at most some tenth of a millisecond, unless one key is
  // longer.
  constexpr std::size_t kRunBytes = std::size_t{1} << 20;
  Run run;
  Hashing hashing(*objects.hasher);
  std::size_t bytes = 0;
  const bool done = for_each_block(column, [&](Block& block) {
    if (!hashing.hash(block, run.next_digests(Block::kSize))) return false;
    run.add_digests(block.size());
    bytes += hashing.bytes();
    if (run.size() + Block::kSize <= objects.at_most && bytes < kRunBytes) return true;
    const bool used = use(run);
    run.clear();
    bytes = 0;
    return used && PyErr_CheckSignals() == 0;
  });
  return done && (run.size() == 0 || use(run));
}

bool for_each_collected_run(PyObject* column, const Objects& objects, const std::function<bool(const Run&)>& use) {
  Run run;
  const auto flush = [&] {
    const bool used = use(run);
    run.clear();
    return used && PyErr_CheckSignals() == 0;
  };
  const bool done = for_each_block(column, [&](Block& block) {
    // Whatever is flushed lets other threads run.
    for (std::size_t i = 0; i < block.size() && block.may_run(i); ++i) {
      Key key;
      if (!key_of(block[i], key) || (!run.fits(key) && !flush())) return false;
      run.add(key, block[i]);
      if (run.size() >= objects.at_most && !flush()) return false;
    }
    return true;
  });
  return done && (run.size() == 0 || use(run));
}

}  // namespace

bool for_each_run(PyObject* column, const Objects& objects, const std::function<bool(const Run&)>& use) {
  if (PyUnicode_Check(column) || PyBytes_Check(column) || PyByteArray_Check(column)) {
    PyErr_SetString(PyExc_TypeError, "one key, where a column or an iterable of keys is needed: put it into a list");
    return false;
  }
  Run run;
  if (PyObject_CheckBuffer(column) != 0) {
    Buffer buffer;
    if (buffer.take(column)) {
      const char* const format = buffer.view().format;
      if (format == nullptr || std::strcmp(format, "O") != 0) {
        return add_buffer(run, buffer.view()) && (run.size() == 0 || use(run));
      }
    } else {
      PyErr_Clear();  // an array of objects that has no buffer: key by key
    }
  }
  if (PyObject_HasAttrString(column, "__arrow_c_array__") != 0) {
    const Ref capsules(PyObject_CallMethod(column, "__arrow_c_array__", nullptr));
    PyObject* schema = nullptr;
    PyObject* array = nullptr;
    if (!capsules || !PyArg_ParseTuple(capsules.get(), "OO", &schema, &array)) return false;
    const auto* const type = static_cast<const ArrowSchema*>(PyCapsule_GetPointer(schema, "arrow_schema"));
    const auto* const data = static_cast<const ArrowArray*>(PyCapsule_GetPointer(array, "arrow_array"));
    return type != nullptr && data != nullptr && add_arrow(run, *type, *data) && (run.size() == 0 || use(run));
  }
  return objects.hasher != nullptr ? for_each_hashed_run(column, objects, use)
                                   : for_each_collected_run(column, objects, use);
}

}  // namespace perhaps::python
