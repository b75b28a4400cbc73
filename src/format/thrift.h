// A reader for the part of Thrift's compact protocol that Parquet's metadata needs. The bytes are not trusted.
//
//   field    = delta << 4 | type; delta 0: the id follows as a zigzag varint; 00 ends the structure
//   integer  = zigzag varint      real = 8 bytes      binary = varint size, bytes      a boolean field is its type
//   list     = size << 4 | type; size 15: the size follows as a varint; then the elements, a boolean as one byte
//   map      = varint size; unless 0: key type << 4 | value type, then the pairs
//
// Reading stops at the first error: everything after it is empty, and wrong() says what it was. Nothing is allocated,
// no list may be longer than the bytes that follow it, and nothing may nest deeper than kMaxDepth.
#pragma once
#include "format/codec.h"

namespace perhaps::format {

class ThriftReader {
 public:
  enum class Type : std::uint8_t { stop, yes, no, byte, i16, i32, i64, real, binary, list, set, map, structure, uuid };
  static constexpr unsigned kMaxDepth = 24;

  explicit ThriftReader(Bytes bytes) noexcept : in_(bytes) {}

  // Calls field(id, type) for each field. It returns false for a field that it did not read, which is then skipped.
  template <class Field>
  void structure(Field field) {
    if (!deeper()) return;
    std::int64_t id = 0;
    while (wrong() == nullptr) {
      const auto head = in_.le<std::uint8_t>();
      const auto type = static_cast<Type>(head & 15);
      if (type == Type::stop) break;
      id = head >> 4 != 0 ? id + (head >> 4) : integer();
      if (id < INT16_MIN || id > INT16_MAX) return fail("a field number is out of range");
      if (!field(id, type)) skip(type);
    }
    --depth_;
  }
  // Calls element() for each element of a list, whose elements must have the type `of`.
  template <class Element>
  void list(Type of, Element element) {
    const auto [type, size] = list_head();
    if (size != 0 && type != of) return fail("a list has elements of another type");
    for (std::uint64_t i = 0; i < size && wrong() == nullptr; ++i) element();
  }
  std::int64_t integer() noexcept {
    const std::uint64_t value = in_.varint();
    return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
  }
  Bytes binary() noexcept { return in_.take(in_.varint()); }

  // Checks the type of a field; if it is wrong, reading stops.
  bool is(Type type, Type wanted) noexcept {
    if (type != wanted) fail("a field has another type");
    return type == wanted;
  }
  void fail(const char* why) noexcept {
    if (wrong_ == nullptr) wrong_ = why;
    in_ = Reader({});
  }
  // Null as long as everything has been well-formed.
  const char* wrong() const noexcept {
    return wrong_ != nullptr ? wrong_ : in_.is_short() ? "ends inside a field" : nullptr;
  }
  std::uint64_t at() const noexcept { return in_.at(); }

 private:
  struct ListHead {
    Type type;
    std::uint64_t size;
  };
  ListHead list_head() noexcept {
    const auto head = in_.le<std::uint8_t>();
    const std::uint64_t size = head >> 4 != 15 ? head >> 4 : in_.varint();
    if (size > in_.rest().size()) fail("a list is longer than the rest");
    return {static_cast<Type>(head & 15), wrong() == nullptr ? size : 0};
  }
  bool deeper() noexcept {
    if (++depth_ > kMaxDepth) fail("nested too deep");
    return wrong() == nullptr;
  }
  void skip(Type type) {
    switch (type) {
      case Type::yes:
      case Type::no:
        return;
      case Type::byte:
        in_.take(1);
        return;
      case Type::i16:
      case Type::i32:
      case Type::i64:
        in_.varint();
        return;
      case Type::real:
        in_.take(8);
        return;
      case Type::uuid:
        in_.take(16);
        return;
      case Type::binary:
        binary();
        return;
      case Type::list:
      case Type::set: {
        if (!deeper()) return;
        const auto [of, size] = list_head();
        for (std::uint64_t i = 0; i < size && wrong() == nullptr; ++i) skip_element(of);
        --depth_;
        return;
      }
      case Type::map: {
        if (!deeper()) return;
        const std::uint64_t size = in_.varint();
        const auto types = size == 0 ? std::uint8_t{0} : in_.le<std::uint8_t>();
        if (size > in_.rest().size()) fail("a map is longer than the rest");
        for (std::uint64_t i = 0; i < size && wrong() == nullptr; ++i) {
          skip_element(static_cast<Type>(types >> 4));
          skip_element(static_cast<Type>(types & 15));
        }
        --depth_;
        return;
      }
      case Type::structure:
        structure([](std::int64_t, Type) { return false; });
        return;
      case Type::stop:
        break;
    }
    fail("a type that does not exist");
  }
  void skip_element(Type type) {
    if (type == Type::yes || type == Type::no) {
      in_.take(1);
    } else {
      skip(type);
    }
  }

  Reader in_;
  unsigned depth_ = 0;
  const char* wrong_ = nullptr;
};

}  // namespace perhaps::format
