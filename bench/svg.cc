#include "report.h"
namespace perhaps::bench {
void write_svg(const std::string&, const std::vector<Table>&) {}
}  // namespace perhaps::bench
