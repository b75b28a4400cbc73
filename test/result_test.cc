// Promise: a Result holds a value or the reason why there is none, and either can be moved out. Would notice: a value
// that is copied instead of moved, an error that is lost.
#include "perhaps/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace perhaps {
namespace {

Result<std::unique_ptr<int>> half(int n) {
  if (n % 2 != 0) return Error{Errc::bad_parameter, std::to_string(n) + " is odd"};
  return std::make_unique<int>(n / 2);
}

TEST(Result, HoldsAValue) {
  auto result = half(42);
  ASSERT_TRUE(result);
  EXPECT_EQ(**result, 21);
  EXPECT_EQ(*result->get(), 21);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 21);
}

TEST(Result, HoldsAnError) {
  auto result = half(7);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::bad_parameter);
  EXPECT_EQ(result.error().detail, "7 is odd");
  const Result<void> passed_on = std::move(result).error();
  ASSERT_FALSE(passed_on);
  EXPECT_EQ(passed_on.error().detail, "7 is odd");
}

// A value that is itself an Error-like type, and a Result of a bool, are not confused with success.
TEST(Result, TruthIsAboutSuccessNotAboutTheValue) {
  const Result<bool> no = false;
  ASSERT_TRUE(no);
  EXPECT_FALSE(*no);
  EXPECT_TRUE(Result<void>());
}

TEST(Result, CopiesAndAssigns) {
  Result<std::string> a = std::string("text");
  Result<std::string> b = Error{Errc::io, "gone"};
  const auto c = a;
  a = b;
  EXPECT_FALSE(a);
  b = c;
  ASSERT_TRUE(b);
  EXPECT_EQ(*b, "text");
  EXPECT_EQ(b->size(), 4u);
}

}  // namespace
}  // namespace perhaps
