// The extension behind the Python package: keys and columns of Python as arrays of the C API (perhaps.h), with the
// interpreter's lock released around batches. CPython's limited API of 3.11: one file serves every later version.
//
// Threads. Each filter has a reader-writer lock: queries share it, changes have it alone. A thread never waits for a
// filter while it holds the interpreter's lock (GIL), so that whoever has the filter can always go on; a thread that
// has a filter may wait for the GIL.
#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "c/digests.h"
#include "column.h"

namespace perhaps::python {
namespace {

// ------------------------------------------------------------------------------------------------------------- filters

struct State {
  std::shared_mutex lock;
  perhaps_filter* filter = nullptr;
};

struct Filter {
  PyObject head;  // PyObject_HEAD
  State* state;
};

State* state_of(PyObject* self) { return reinterpret_cast<Filter*>(self)->state; }

State* made(PyObject* self) {
  State* const state = state_of(self);
  if (state != nullptr && state->filter != nullptr) return state;
  PyErr_SetString(errors.error, "this filter was never made: __init__ did not run or failed");
  return nullptr;
}

// The lock of a filter, taken without waiting if it is free, else without the GIL.
class Reading {
 public:
  explicit Reading(State& state) : state_(state) {
    if (state_.lock.try_lock_shared()) return;
    const NoGil others;
    state_.lock.lock_shared();
  }
  Reading(const Reading&) = delete;
  ~Reading() { state_.lock.unlock_shared(); }

 private:
  State& state_;
};
class Writing {
 public:
  explicit Writing(State& state) : state_(state) {
    if (state_.lock.try_lock()) return;
    const NoGil others;
    state_.lock.lock();
  }
  Writing(const Writing&) = delete;
  ~Writing() { state_.lock.unlock(); }

 private:
  State& state_;
};

PyObject* filter_new(PyTypeObject* type, PyObject*, PyObject*) {
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* const self = allocate(type, 0);
  if (self == nullptr) return nullptr;
  reinterpret_cast<Filter*>(self)->state = new (std::nothrow) State;
  if (state_of(self) != nullptr) return self;
  Py_DECREF(self);
  return PyErr_NoMemory();
}

void filter_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  if (State* const state = state_of(self)) {
    perhaps_free(state->filter);
    delete state;
  }
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

// What __init__ made. A filter is made once.
PyObject* keep(PyObject* self, perhaps_filter* filter) {
  State* const state = state_of(self);
  const Writing alone(*state);
  if (state->filter != nullptr) {
    perhaps_free(filter);
    PyErr_SetString(errors.error, "this filter exists already: make another");
    return nullptr;
  }
  state->filter = filter;
  Py_RETURN_NONE;
}

// A count among the options. PyArg_ParseTuple wraps numbers that are out of range, and knows no names.
template <class Number>
bool count_of(PyObject* object, const char* name, Number& to) {
  const Ref index(PyNumber_Index(object));
  if (!index) return false;
  const unsigned long long value = PyLong_AsUnsignedLongLong(index.get());
  const bool is_long = PyErr_Occurred() != nullptr;  // or negative
  if (is_long) PyErr_Clear();
  if (is_long || value > std::numeric_limits<Number>::max()) {
    PyErr_Format(errors.bad_request, "%s: %S is not a number from 0 to %llu", name, index.get(),
                 static_cast<unsigned long long>(std::numeric_limits<Number>::max()));
    return false;
  }
  to = static_cast<Number>(value);
  return true;
}

// A converter for PyArg_ParseTuple.
int to_secret(PyObject* object, void* to) {
  if (object == Py_None) return 1;
  if (!PyBytes_Check(object) || PyBytes_Size(object) != 16) {
    PyErr_SetString(PyExc_ValueError, "a key of the hash is a bytes object of 16 bytes");
    return 0;
  }
  *static_cast<const unsigned char**>(to) = reinterpret_cast<const unsigned char*>(PyBytes_AsString(object));
  return 1;
}

struct Options {
  perhaps_options to{};
  std::uint64_t seed = 0;
};
// family, keys, fpr, bits_per_key, max_bytes, guard_bits, arity, seed, secret, threads, format, parameters
bool read_options(PyObject* args, Options& options) {
  perhaps_options& to = options.to;
  to.size = sizeof to;
  PyObject* keys = nullptr;
  PyObject* max_bytes = nullptr;
  PyObject* guard_bits = nullptr;
  PyObject* arity = nullptr;
  PyObject* seed = nullptr;
  PyObject* threads = nullptr;
  if (!PyArg_ParseTuple(args, "zOddOOOOO&Ozz", &to.family, &keys, &to.fpr, &to.bits_per_key, &max_bytes, &guard_bits,
                        &arity, &seed, to_secret, &to.secret, &threads, &to.format, &to.parameters))
    return false;
  if (!count_of(keys, "keys", to.keys) || !count_of(max_bytes, "max_bytes", to.max_bytes) ||
      !count_of(guard_bits, "guard_bits", to.guard_bits) || !count_of(arity, "arity", to.arity) ||
      !count_of(threads, "threads", to.threads))
    return false;
  if (seed != Py_None) {
    if (!number_of(seed, options.seed)) return false;
    to.seed = &options.seed;
  }
  return true;
}

PyObject* filter_make(PyObject* self, PyObject* args) {
  Options options;
  if (!read_options(args, options)) return nullptr;
  perhaps_filter* filter = nullptr;
  perhaps_status status = PERHAPS_OK;
  {
    const NoGil others;
    status = perhaps_new(&options.to, &filter);
  }
  if (status != PERHAPS_OK) return raise(status, perhaps_last_error(), Of::request);
  return keep(self, filter);
}

PyObject* filter_build(PyObject* self, PyObject* args) {
  PyObject* column = nullptr;
  PyObject* rest = nullptr;
  Options options;
  if (!PyArg_ParseTuple(args, "OO!", &column, &PyTuple_Type, &rest) || !read_options(rest, options)) return nullptr;
  return guarded([&]() -> PyObject* {
    perhaps_filter* filter = nullptr;
    bool mixed = false;
    const auto use = [&](const Run& run) {
      if (filter != nullptr) {
        mixed = true;
        return false;
      }
      perhaps_status status = PERHAPS_OK;
      {
        const NoGil others;
        status = run.of() == Run::Of::numbers ? perhaps_build_integers(&options.to, run.numbers(), run.size(), &filter)
                                              : perhaps_build(&options.to, run.keys(), run.size(), &filter);
      }
      if (status != PERHAPS_OK) raise(status, perhaps_last_error(), Of::request);
      return status == PERHAPS_OK;
    };
    bool done = for_each_run(column, {.at_most = SIZE_MAX}, use);
    if (done && filter == nullptr) done = use(Run());  // no key at all
    if (mixed) PyErr_SetString(PyExc_TypeError, "a filter is built from texts and bytes, or from ints, not from both");
    if (done) return keep(self, filter);
    perhaps_free(filter);
    return nullptr;
  });
}

PyObject* filter_open(PyObject* self, PyObject* args) {
  PyObject* path = nullptr;
  int verify = 1;
  perhaps_open_options options{};
  options.size = sizeof options;
  if (!PyArg_ParseTuple(args, "O&O&zzp", PyUnicode_FSConverter, &path, to_secret, &options.secret, &options.format,
                        &options.parameters, &verify))
    return nullptr;
  const Ref kept(path);
  if (verify == 0) options.flags = PERHAPS_NO_VERIFY;
  perhaps_filter* filter = nullptr;
  perhaps_status status = PERHAPS_OK;
  {
    const char* const name = PyBytes_AsString(path);
    const NoGil others;
    status = perhaps_open(name, &options, &filter);
  }
  if (status != PERHAPS_OK) return raise(status, perhaps_last_error(), Of::bytes);
  return keep(self, filter);
}

PyObject* filter_read(PyObject* self, PyObject* args) {
  Py_buffer bytes{};
  perhaps_open_options options{};
  options.size = sizeof options;
  if (!PyArg_ParseTuple(args, "y*O&zzz", &bytes, to_secret, &options.secret, &options.format, &options.parameters,
                        &options.file_name))
    return nullptr;
  perhaps_filter* filter = nullptr;
  perhaps_status status = PERHAPS_OK;
  {
    const NoGil others;
    status = perhaps_from_bytes(bytes.buf, static_cast<std::size_t>(bytes.len), &options, &filter);
  }
  PyBuffer_Release(&bytes);
  if (status != PERHAPS_OK) return raise(status, perhaps_last_error(), Of::bytes);
  return keep(self, filter);
}

PyTypeObject* filter_type = nullptr;

State* other_of(PyObject* other) {
  if (PyObject_TypeCheck(other, filter_type) != 0) return made(other);
  PyErr_SetString(PyExc_TypeError, "a filter is combined with a filter");
  return nullptr;
}

PyObject* filter_copy_from(PyObject* self, PyObject* other) {
  State* const from = other_of(other);
  if (from == nullptr) return nullptr;
  perhaps_filter* filter = nullptr;
  perhaps_status status = PERHAPS_OK;
  {
    const NoGil others;
    const std::shared_lock reading(from->lock);
    status = perhaps_copy(from->filter, &filter);
  }
  if (status != PERHAPS_OK) return raise(status, perhaps_last_error(), Of::request);
  return keep(self, filter);
}

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
  raise(status, perhaps_last_error(), Of::request);
  return -1;
}

PyObject* filter_add(PyObject* self, PyObject* object) {
  State* const state = made(self);
  Key key;
  if (state == nullptr || !key_of(object, key)) return nullptr;
  perhaps_status status = PERHAPS_OK;
  {
    const Writing alone(*state);
    status = key.is_number ? perhaps_insert_integers(state->filter, &key.number, 1, nullptr)
                           : perhaps_insert(state->filter, &key.bytes, 1, nullptr);
  }
  if (status != PERHAPS_OK) return raise(status, perhaps_last_error(), Of::request);
  Py_RETURN_NONE;
}

PyObject* filter_discard(PyObject* self, PyObject* object) {
  State* const state = made(self);
  Key key;
  if (state == nullptr || !key_of(object, key)) return nullptr;
  perhaps_erased erased{};
  erased.size = sizeof erased;
  perhaps_status status = PERHAPS_OK;
  {
    const Writing alone(*state);
    status = key.is_number ? perhaps_erase_integers(state->filter, &key.number, 1, &erased)
                           : perhaps_erase(state->filter, &key.bytes, 1, &erased);
  }
  if (status != PERHAPS_OK) return raise(status, perhaps_last_error(), Of::request);
  return PyUnicode_FromString(erased.removed != 0 ? "removed" : erased.kept != 0 ? "kept" : "absent");
}

perhaps_status insert(perhaps_filter& filter, const Run& run) {
  switch (run.of()) {
    case Run::Of::bytes:
      return perhaps_insert(&filter, run.keys(), run.size(), nullptr);
    case Run::Of::numbers:
      return perhaps_insert_integers(&filter, run.numbers(), run.size(), nullptr);
    case Run::Of::digests:
      return insert_digests(filter, std::span(run.numbers(), run.size()));
  }
  return PERHAPS_INTERNAL;
}

PyObject* filter_update(PyObject* self, PyObject* column) {
  State* const state = made(self);
  if (state == nullptr) return nullptr;
  return guarded([&]() -> PyObject* {
    const auto hasher = hasher_of(*state->filter);
    const bool done = for_each_run(column, {.hasher = hasher ? &*hasher : nullptr}, [&](const Run& run) {
      perhaps_status status = PERHAPS_OK;
      {
        const NoGil others;
        const std::unique_lock alone(state->lock);
        status = insert(*state->filter, run);
      }
      if (status != PERHAPS_OK) raise(status, perhaps_last_error(), Of::request);
      return status == PERHAPS_OK;
    });
    if (!done) return nullptr;
    Py_RETURN_NONE;
  });
}

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
      if (status != PERHAPS_OK) raise(status, perhaps_last_error(), Of::request);
      return status == PERHAPS_OK;
    });
    if (!done || PyByteArray_Resize(answers.get(), static_cast<Py_ssize_t>(at)) != 0) return nullptr;
    return answers.release();
  });
}

// Both locks in the order of their addresses, so that a |= b and b |= a cannot wait for each other.
template <class Combine>
PyObject* combine(PyObject* self, PyObject* other, Combine with) {
  State* const to = made(self);
  State* const from = to == nullptr ? nullptr : other_of(other);
  if (from == nullptr) return nullptr;
  perhaps_status status = PERHAPS_OK;
  {
    const NoGil others;
    if (to == from) {
      const std::unique_lock alone(to->lock);
      status = with(to->filter, to->filter);
    } else if (to < from) {
      const std::unique_lock alone(to->lock);
      const std::shared_lock reading(from->lock);
      status = with(to->filter, from->filter);
    } else {
      const std::shared_lock reading(from->lock);
      const std::unique_lock alone(to->lock);
      status = with(to->filter, from->filter);
    }
  }
  if (status != PERHAPS_OK) return raise(status, perhaps_last_error(), Of::request);
  Py_RETURN_NONE;
}
PyObject* filter_merge(PyObject* self, PyObject* other) { return combine(self, other, perhaps_merge); }
PyObject* filter_intersect(PyObject* self, PyObject* other) { return combine(self, other, perhaps_intersect); }

PyObject* filter_bytes(PyObject* self, PyObject*) {
  State* const state = made(self);
  if (state == nullptr) return nullptr;
  // Another thread may make it grow between the two calls.
  for (std::size_t capacity = 0;;) {
    Ref bytes(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(capacity)));
    if (!bytes) return nullptr;
    std::size_t size = 0;
    perhaps_status status = PERHAPS_OK;
    {
      char* const to = PyBytes_AsString(bytes.get());
      const NoGil others;
      const std::shared_lock reading(state->lock);
      status = perhaps_to_bytes(state->filter, to, capacity, &size);
    }
    if (status == PERHAPS_OK && size == capacity) return bytes.release();
    if (status != PERHAPS_OK && status != PERHAPS_TOO_SMALL) return raise(status, perhaps_last_error(), Of::request);
    capacity = size;
  }
}

PyObject* filter_save(PyObject* self, PyObject* args) {
  State* const state = made(self);
  PyObject* path = nullptr;
  if (state == nullptr || !PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) return nullptr;
  const Ref kept(path);
  perhaps_status status = PERHAPS_OK;
  {
    const char* const name = PyBytes_AsString(path);
    const NoGil others;
    const std::shared_lock reading(state->lock);
    status = perhaps_save(state->filter, name);
  }
  if (status != PERHAPS_OK) return raise(status, perhaps_last_error(), Of::request);
  Py_RETURN_NONE;
}

PyObject* filter_nbytes(PyObject* self, PyObject*) {
  State* const state = made(self);
  if (state == nullptr) return nullptr;
  const Reading reading(*state);
  return PyLong_FromUnsignedLongLong(perhaps_byte_size(state->filter));
}

PyObject* filter_describe(PyObject* self, PyObject*) {
  State* const state = made(self);
  if (state == nullptr) return nullptr;
  perhaps_description d{};
  d.size = sizeof d;
  perhaps_status status = PERHAPS_OK;
  {
    const NoGil others;
    const std::shared_lock reading(state->lock);
    status = perhaps_describe(state->filter, &d);
  }
  if (status != PERHAPS_OK) return raise(status, perhaps_last_error(), Of::request);
  return Py_BuildValue(
      "{s:s,s:s,s:s,s:K,s:K,s:K,s:K,s:K,s:d,s:d,s:d,s:d,s:O}", "format", d.format, "family", d.family, "hash", d.hash,
      "bytes", static_cast<unsigned long long>(d.bytes), "bits", static_cast<unsigned long long>(d.bits), "probes",
      static_cast<unsigned long long>(d.probes), "keys", static_cast<unsigned long long>(d.keys), "capacity",
      static_cast<unsigned long long>(d.capacity), "keys_estimated", d.keys_estimated, "fill", d.fill, "fpr", d.fpr,
      "fpr_at_capacity", d.fpr_at_capacity, "read_only", d.read_only != 0 ? Py_True : Py_False);
}

PyMethodDef filter_methods[] = {
    {"_make", filter_make, METH_VARARGS, nullptr},
    {"_build", filter_build, METH_VARARGS, nullptr},
    {"_open", filter_open, METH_VARARGS, nullptr},
    {"_read", filter_read, METH_VARARGS, nullptr},
    {"_copy_from", filter_copy_from, METH_O, nullptr},
    {"add", filter_add, METH_O, "add(key)\n\nInserts one key: a str, bytes or int."},
    {"discard", filter_discard, METH_O,
     "discard(key)\n\nErases one key that was inserted: 'removed', 'absent', or 'kept' if a full counter remains."},
    {"update", filter_update, METH_O, "update(keys)\n\nInserts every key of a column or an iterable."},
    {"_contains", filter_contains_column, METH_O, nullptr},
    {"_merge", filter_merge, METH_O, nullptr},
    {"_intersect", filter_intersect, METH_O, nullptr},
    {"__bytes__", filter_bytes, METH_NOARGS, "The bytes of the file that save() writes."},
    {"_save", filter_save, METH_VARARGS, nullptr},
    {"_nbytes", filter_nbytes, METH_NOARGS, nullptr},
    {"_describe", filter_describe, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot filter_slots[] = {{Py_tp_new, reinterpret_cast<void*>(filter_new)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(filter_dealloc)},
                              {Py_tp_methods, filter_methods},
                              {Py_sq_contains, reinterpret_cast<void*>(filter_contains)},
                              {0, nullptr}};
PyType_Spec filter_spec = {"perhaps._native.Filter", sizeof(Filter), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           filter_slots};

// -------------------------------------------------------------------------------------------------------------- module

PyObject* entries(int (*at)(std::size_t, perhaps_entry*)) {
  Ref list(PyList_New(0));
  perhaps_entry entry{};
  entry.size = sizeof entry;
  for (std::size_t i = 0; list && at(i, &entry) == 1; ++i) {
    const Ref row(Py_BuildValue("(ssNNNN)", entry.name, entry.summary, PyBool_FromLong(entry.inserts),
                                PyBool_FromLong(entry.erases), PyBool_FromLong(entry.merges),
                                PyBool_FromLong(entry.builds)));
    if (!row || PyList_Append(list.get(), row.get()) != 0) return nullptr;
  }
  return list.release();
}
PyObject* families(PyObject*, PyObject*) { return entries(perhaps_family_at); }
PyObject* formats(PyObject*, PyObject*) { return entries(perhaps_format_at); }

PyObject* size_of(PyObject*, PyObject* args) {
  Options options;
  if (!read_options(args, options)) return nullptr;
  perhaps_sizes sizes{};
  sizes.size = sizeof sizes;
  const perhaps_status status = perhaps_size_of(&options.to, &sizes);
  if (status != PERHAPS_OK) return raise(status, perhaps_last_error(), Of::request);
  return Py_BuildValue("{s:K,s:K,s:K,s:d}", "bytes", static_cast<unsigned long long>(sizes.bytes), "bits",
                       static_cast<unsigned long long>(sizes.bits), "probes",
                       static_cast<unsigned long long>(sizes.probes), "fpr", sizes.fpr);
}

PyMethodDef module_methods[] = {{"families", families, METH_NOARGS, nullptr},
                                {"formats", formats, METH_NOARGS, nullptr},
                                {"size", size_of, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT, "perhaps._native", nullptr, -1, module_methods, nullptr, nullptr, nullptr, nullptr};

bool add_error(PyObject* module, PyObject*& to, const char* name, const char* text, PyObject* also = nullptr) {
  PyObject* const base = &to == &errors.error ? PyExc_Exception : errors.error;
  const Ref bases(also == nullptr ? PyTuple_Pack(1, base) : PyTuple_Pack(2, base, also));
  if (!bases) return false;
  to = PyErr_NewExceptionWithDoc((std::string("perhaps.") + name).c_str(), text, bases.get(), nullptr);
  return to != nullptr && PyModule_AddObjectRef(module, name, to) == 0;
}

}  // namespace
}  // namespace perhaps::python

PyMODINIT_FUNC PyInit__native() {
  using namespace perhaps::python;
  Ref module(PyModule_Create(&module_def));
  if (!module) return nullptr;
  PyObject* const m = module.get();
  const Ref type(PyType_FromModuleAndSpec(m, &filter_spec, nullptr));
  if (!type || PyModule_AddObjectRef(m, "Filter", type.get()) != 0) return nullptr;
  filter_type = reinterpret_cast<PyTypeObject*>(type.get());
  Py_INCREF(type.get());
  const bool good =
      add_error(m, errors.error, "Error", "What went wrong, in words. The kinds below are subclasses.") &&
      add_error(m, errors.damaged, "DamagedFile", "Bytes that are no filter: truncated, damaged, foreign or newer.") &&
      add_error(m, errors.mismatch, "Mismatch", "Two filters that cannot be combined; the text names what differs.") &&
      add_error(m, errors.full, "Full", "No room for another key.") &&
      add_error(m, errors.wrong_key, "WrongKey", "A keyed filter without its key, or with another one.") &&
      add_error(m, errors.bad_request, "BadRequest", "A number out of range, or an unknown name.", PyExc_ValueError) &&
      add_error(m, errors.unsupported, "Unsupported", "Something that this filter cannot do.") &&
      add_error(m, errors.file, "FileError", "The operating system reported an error.", PyExc_OSError) &&
      PyModule_AddStringConstant(m, "version", perhaps_version()) == 0;
  return good ? module.release() : nullptr;
}
