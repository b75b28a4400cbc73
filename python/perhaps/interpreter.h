// CPython's limited API of 3.11: references, the interpreter's lock (GIL), exceptions.
#pragma once
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <exception>
#include <new>
#include <utility>

#include "perhaps.h"

namespace perhaps::python {

// A reference that is given back.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* object) noexcept : object_(object) {}
  static Ref to(PyObject* object) noexcept {
    Py_INCREF(object);
    return Ref(object);
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }
  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Without the GIL for as long as it lives.
class NoGil {
 public:
  NoGil() : state_(PyEval_SaveThread()) {}
  NoGil(const NoGil&) = delete;
  ~NoGil() { PyEval_RestoreThread(state_); }

 private:
  PyThreadState* state_;
};

struct Errors {
  PyObject* error = nullptr;
  PyObject* damaged = nullptr;
  PyObject* mismatch = nullptr;
  PyObject* full = nullptr;
  PyObject* wrong_key = nullptr;
  PyObject* bad_request = nullptr;
  PyObject* unsupported = nullptr;
  PyObject* file = nullptr;
};
extern Errors errors;  // made when the module is, and kept

// Sets the exception that fits the last failure in this thread. Returns nullptr, as functions do that raise.
PyObject* raise(perhaps_status status);

// Runs what allocates. Nothing is thrown into the interpreter.
template <class Work>
auto guarded(Work work) noexcept -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_SystemError, e.what());
  }
  return {};
}

}  // namespace perhaps::python
