#include "compiler/pass/pipeline.h"

#include <algorithm>
#include <chrono>
#include <regex>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"

namespace kiln {

absl::Status Pipeline::Run(Module& module, const PipelineOptions& o, std::vector<PassRecord>* records) const {
  std::vector<std::vector<const PassInfo*>> resolved;
  for (const Step& s : steps_) {
    resolved.emplace_back();
    for (const std::string& p : s.passes) {
      const PassInfo* info = lookup_(p);
      if (!info) return InvalidArgument("error: no pass is named '", p, "' (kiln opt --list prints them)");
      resolved.back().push_back(info);
    }
  }
  // The facts that hold after each pass follow from the table alone: an order that cannot work fails here.
  Facts have = o.initial_facts;
  for (const auto& step : resolved)
    for (const PassInfo* pass : step) {
      if (pass->needs & ~have)
        return Internal("pipeline ", name_, ": ", pass->name, " needs ", FactNames(pass->needs & ~have),
                        ", which nothing before it gives");
      have = (have & ~pass->breaks) | pass->gives;
    }
  for (const std::string& p : o.disabled)
    if (!lookup_(p)) return InvalidArgument("error: cannot disable '", p, "': no pass is named so");
  std::regex dumped;
  try {
    dumped = std::regex(o.dump_pass_re, std::regex::ECMAScript);
  } catch (const std::regex_error&) {
    return InvalidArgument("error: '", o.dump_pass_re, "' is not a regular expression");
  }
  PassContext ctx;
  ctx.fuel = o.fuel;
  ctx.tuning = o.tuning;
  ctx.f8_products = o.f8_products;
  int counter = 0;
  for (size_t s = 0; s < steps_.size(); ++s) {
    for (int round = 0;; ++round) {
      bool changed = false;
      for (size_t k = 0; k < resolved[s].size(); ++k) {
        const PassInfo* pass = resolved[s][k];
        if (std::find(o.disabled.begin(), o.disabled.end(), pass->name) != o.disabled.end()) continue;
        const auto start = std::chrono::steady_clock::now();
        auto result = pass->run(module, ctx);
        if (!result.ok()) return result.status();
        for (const std::string& note : ctx.notes)
          if (o.on_note) o.on_note(note);
        ctx.notes.clear();
        if (records)
          records->push_back(
              {pass->name, *result,
               std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count(),
               module.instruction_count()});
        changed |= *result;
        if (*result && o.verify_each) {
          if (absl::Status v = VerifyModule(module); !v.ok())
            return Internal("after pass ", pass->name, ": ", v.message());
        }
        if (*result && o.on_change) o.on_change(pass->name, module);
        ++counter;
        if (*result && !o.dump_dir.empty() && std::regex_search(pass->name, dumped)) {
          const char* next = k + 1 < resolved[s].size()                     ? resolved[s][k + 1]->name
                             : !steps_[s].repeat && s + 1 < resolved.size() ? resolved[s + 1][0]->name
                             : steps_[s].repeat                             ? resolved[s][0]->name
                                                                            : "end";
          RETURN_IF_ERROR(WriteFile(absl::StrFormat("%s/%s.%04d.%s.after_%s.before_%s.txt", o.dump_dir, module.name(),
                                                    counter, name_, pass->name, next),
                                    ToText(module)));
        }
        if (pass->name == o.stop_after) return absl::OkStatus();
      }
      if (!steps_[s].repeat || !changed) break;
      if (round + 1 >= kFixpointCap) {
        if (o.on_note)
          o.on_note(absl::StrCat("pipeline ", name_, ": ", absl::StrJoin(steps_[s].passes, ", "), " still change the module after ",
                                 kFixpointCap, " rounds"));
        break;
      }
    }
  }
  if (absl::Status v = VerifyModule(module); !v.ok()) return Internal("after pipeline ", name_, ": ", v.message());
  return absl::OkStatus();
}

std::vector<std::string> Pipeline::Passes() const {
  std::vector<std::string> out;
  for (const Step& s : steps_)
    for (const std::string& p : s.passes)
      if (std::find(out.begin(), out.end(), p) == out.end()) out.push_back(p);
  return out;
}

}  // namespace kiln
