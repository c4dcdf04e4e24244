#include "compiler/import/platform.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kiln {

void SettlePlatform(mlir::Program* program, int64_t platform) {
  for (mlir::Function& f : program->functions) {
    if (!f.is_public) continue;
    auto& arguments = f.body.arguments;
    const auto at = std::find_if(arguments.begin(), arguments.end(), [](const mlir::BlockArgument& a) {
      return absl::StrContains(a.attributes, "jax.global_constant = \"_platform_index\"");
    });
    if (at == arguments.end()) continue;
    auto number = std::make_unique<mlir::Op>();
    number->name = "stablehlo.constant";
    number->results = {{at->name, 1}};
    number->attributes["value"] = absl::StrCat("dense<", platform, ">");
    number->result_types = {at->type};
    number->loc = f.loc;
    f.body.ops.insert(f.body.ops.begin(), std::move(number));
    arguments.erase(at);
  }
}

}  // namespace kiln
