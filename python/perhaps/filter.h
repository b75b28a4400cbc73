// The type Filter: a filter of the C API, and its lock.
//
// Threads. Each filter has a reader-writer lock: queries share it, changes have it alone. A thread never waits for a
// filter while it holds the interpreter's lock (GIL), so that whoever has the filter can always go on; a thread that
// has a filter may wait for the GIL.
#pragma once
#include <shared_mutex>

#include "interpreter.h"

namespace perhaps::python {

struct State {
  std::shared_mutex lock;
  perhaps_filter* filter = nullptr;
};

struct Filter {
  PyObject head;  // PyObject_HEAD
  State* state;
};

inline State* state_of(PyObject* self) { return reinterpret_cast<Filter*>(self)->state; }

// Of a filter that was made; nullptr: an exception is set.
State* made(PyObject* self);
State* made_other(PyObject* other);  // a filter that `self` is combined with

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

// Its methods, as the interpreter calls them. The first five make what __new__ left empty.
PyObject* filter_make(PyObject* self, PyObject* args);
PyObject* filter_build(PyObject* self, PyObject* args);
PyObject* filter_open(PyObject* self, PyObject* args);
PyObject* filter_read(PyObject* self, PyObject* args);
PyObject* filter_copy_from(PyObject* self, PyObject* other);
int filter_contains(PyObject* self, PyObject* key);
PyObject* filter_contains_column(PyObject* self, PyObject* column);
PyObject* filter_add(PyObject* self, PyObject* key);
PyObject* filter_discard(PyObject* self, PyObject* key);
PyObject* filter_update(PyObject* self, PyObject* column);
PyObject* filter_merge(PyObject* self, PyObject* other);
PyObject* filter_intersect(PyObject* self, PyObject* other);
PyObject* filter_bytes(PyObject* self, PyObject*);
PyObject* filter_save(PyObject* self, PyObject* args);
PyObject* filter_nbytes(PyObject* self, PyObject*);
PyObject* filter_describe(PyObject* self, PyObject*);

// The type itself, new and counted; nullptr: an exception is set.
PyObject* make_filter_type(PyObject* module);

}  // namespace perhaps::python
