// A library that looks for numbers that are not finite: the operation that gave the first is named, and the run ends or
// goes on.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "checked.h"
#include "tests/link/expect.h"

namespace {

std::vector<float> x(512 * 128), w(128 * 256), out(512 * 256);

checked::Status Run(float value) {
  checked::Context context;
  for (float& v : x) v = value;
  for (float& v : w) v = 1;
  return checked::run(context, checked::Argument_pixels::Unchecked(x.data()), checked::Argument_w::Unchecked(w.data()),
                      checked::Result_result0::Unchecked(out.data()));
}

struct Seen {
  int reports = 0;
  kiln_numerics_report first = {};
};

int GoOn(void* self, const kiln_numerics_report* report) {
  auto* seen = static_cast<Seen*>(self);
  if (seen->reports++ == 0) seen->first = *report;
  return 1;
}

}  // namespace

int main() {
  Expect(Run(1).ok(), "products of 128 stay positive");
  // 128 * 0.03 = 3.84 sinks by 1.5 a round: the third takes the logarithm of a negative number.
  const checked::Status status = Run(0.03f);
  Expect(status.code == CHECKED_NUMERICS, "the run ends");
  Expect(std::strstr(status.text(), "not finite") != nullptr, "the status has words");
  const std::string text = checked::Numerics::text();
  Expect(text.find("jit(f)/while/body/") != std::string::npos && text.find("/src/model.py:3") != std::string::npos &&
             text.find("NaN; 131072 are not finite") != std::string::npos,
         text.c_str());

  Seen seen;
  checked::Numerics::handle(GoOn, &seen);
  Expect(Run(0.03f).ok() && std::isnan(out[0]), "a handler lets it go on");
  Expect(seen.reports == 1, "what takes a NaN over is not blamed");
  Expect(std::isnan(seen.first.value) && seen.first.index == 0 && seen.first.count == 512 * 256, "what was found");

  seen = {};
  Expect(Run(std::numeric_limits<float>::quiet_NaN()).ok() && seen.reports == 0, "arguments are not blamed");
  seen = {};
  Expect(Run(2e38f).ok() && seen.reports >= 1 && std::isinf(seen.first.value) && seen.first.value > 0 &&
             std::strstr(seen.first.op_name, "dot_general") != nullptr && seen.first.source_line == 12,
         "a sum that overflows");
  checked::Numerics::handle(nullptr, nullptr);
  Expect(Run(-1).code == CHECKED_NUMERICS, "without a handler it ends again");
  if (!failures) std::printf("numerics hold\n");
  return failures ? 1 : 0;
}
