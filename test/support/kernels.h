// Every row of batch kernels this machine can run.
#pragma once
#include "kernel/table.h"

namespace perhaps::test {

// Calls `body(row)` with each row in use in turn, and leaves the one that was.
template <class Body>
void with_every_kernel(Body body) {
  const kernel::Row& before = kernel::active();
  for (const kernel::Row* row : kernel::rows()) {
    kernel::use(*row);
    body(*row);
  }
  kernel::use(before);
}

}  // namespace perhaps::test
