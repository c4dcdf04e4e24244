// kiln reduce FILE --keep=CMD: the smallest module that CMD still accepts.
//
// CMD is run by the shell with a candidate's path for every {} in it (or at its end) and says by exit code 0 that the
// candidate still shows what is looked for. Edits are tried from coarse to fine until none is accepted: results are
// dropped, instructions give way to an operand of their shape, to a new argument or to zeros, loops and branches to
// their inputs.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "aot/tools/commands.h"
#include "compiler/base/temp_folder.h"
#include "compiler/base/text.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"
#include "compiler/import/import.h"
#include "compiler/pipeline/registry.h"

namespace kiln {
namespace {

std::string ShellQuote(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

class Reducer {
 public:
  Reducer(std::unique_ptr<Module> m, std::string command, std::string path)
      : m_(std::move(m)), command_(std::move(command)), path_(std::move(path)) {}

  absl::StatusOr<std::unique_ptr<Module>> Run() {
    m_->entry_layout.reset();
    m_->aliases.clear();
    if (!Accepts(*m_)) return InvalidArgument("error: the command does not accept the module as it is");
    for (bool again = true; again;) {
      again = Results();
      again = Instructions() || again;
    }
    return std::move(m_);
  }

 private:
  bool Accepts(const Module& m) {
    if (!WriteFile(path_, ToText(m)).ok()) return false;
    const std::string line =
        absl::StrContains(command_, "{}") ? absl::StrReplaceAll(command_, {{"{}", path_}}) : command_ + " " + path_;
    // A candidate may loop forever: then it is not what is looked for.
    const int status = std::system(absl::StrCat("timeout 20 sh -c ", ShellQuote(line), " > /dev/null 2>&1").c_str());
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  // Keeps an edit of a copy if the result is valid, smaller and accepted.
  bool Try(const std::function<bool(Module&)>& edit) {
    std::unique_ptr<Module> copy = m_->Clone();
    if (!edit(*copy)) return false;
    PassContext ctx;
    for (const char* pass : {"tuple-simplifier", "dce"})
      if (!FindPass(pass)->run(*copy, ctx).ok()) return false;
    copy->RemoveUnreachableComputations();
    if (!VerifyModule(*copy).ok()) return false;
    if (ToText(*copy).size() >= ToText(*m_).size() || !Accepts(*copy)) return false;
    m_ = std::move(copy);
    std::fprintf(stderr, "\r\033[K%lld instructions", static_cast<long long>(m_->instruction_count()));
    return true;
  }

  // Halves, then single elements, of what the entry returns.
  bool Results() {
    bool any = false;
    for (size_t size = m_->entry()->root()->operand_count(); size >= 1; size /= 2)
      for (size_t at = 0;
           m_->entry()->root()->Is(Opcode::Tuple) && at < static_cast<size_t>(m_->entry()->root()->operand_count());) {
        const bool done = Try([&](Module& m) {
          Instruction* root = m.entry()->root();
          std::vector<Instruction*> kept;
          std::vector<Shape> shapes;
          for (size_t k = 0; k < static_cast<size_t>(root->operand_count()); ++k)
            if (k < at || k >= at + size) {
              kept.push_back(root->operand(static_cast<int64_t>(k)));
              shapes.push_back(kept.back()->shape());
            }
          if (kept.empty()) return false;
          m.entry()->set_root(kept.size() == 1 ? kept[0] : m.entry()->Add(Opcode::Tuple, Shape::Tuple(shapes), kept));
          return true;
        });
        any = any || done;
        if (!done) at += size;
      }
    return any;
  }

  bool Instructions() {
    bool any = false;
    // Names survive copying; those nearest to the results first, since they carry the most with them.
    std::vector<std::pair<std::string, std::string>> all;
    for (Computation* c : m_->PostOrder()) {
      const std::vector<Instruction*> order = c->PostOrder();
      for (auto it = order.rbegin(); it != order.rend(); ++it) all.push_back({c->name(), (*it)->name()});
    }
    for (const auto& [computation, name] : all)
      for (int way = -2; way < 8; ++way) {
        const bool done = Try([&](Module& m) {
          Computation* c = nullptr;
          for (const auto& k : m.computations())
            if (k->name() == computation) c = k.get();
          if (!c) return false;
          for (const auto& k : c->instructions())
            if (k->name() == name) return Replace(m, c, k.get(), way);
          return false;
        });
        any = any || done;
        if (done) break;
      }
    return any;
  }

  // way >= 0: by that operand; -1: by zeros; -2: by a new argument of the entry.
  static bool Replace(Module& m, Computation* c, Instruction* i, int way) {
    if (i->Is(Opcode::Parameter) || i->Is(Opcode::Constant) || (i->Is(Opcode::Tuple) && way < 0)) return false;
    Instruction* with = nullptr;
    if (way >= 0) {
      if (way >= i->operand_count() || !i->operand(way)->shape().Compatible(i->shape())) return false;
      with = i->operand(way);
    } else if (!i->shape().IsArray()) {
      return false;
    } else if (way == -1) {
      Instruction* zero = c->AddConstant(Literal::Of(i->shape().type(), 0));
      with = zero;
      if (i->shape().rank() > 0) {
        with = c->Add(Opcode::Broadcast, Shape::Array(i->shape().type(), i->shape().dims()), {zero});
        with->mutable_attrs().dimensions = Ints{};
      }
      if (i->operand_count() == 0 || (i->Is(Opcode::Broadcast) && i->operand(0)->Is(Opcode::Constant))) return false;
    } else {
      if (c != m.entry()) return false;
      with = c->AddParameter(static_cast<int64_t>(c->parameters().size()), i->shape(), "p");
      m.argument_names.clear();
    }
    i->ReplaceAllUsesWith(with);
    return true;
  }

  std::unique_ptr<Module> m_;
  const std::string command_, path_;
};

absl::Status Run(const Arguments& args) {
  if (!args.Has("keep"))
    return InvalidArgument("error: --keep is needed: a command that exits with 0 for what to keep");
  ASSIGN_OR_RETURN(auto module, LoadModule(args.positional[0]));
  const TempFolder folder;
  RETURN_IF_ERROR(folder.Made());
  auto smallest = Reducer(std::move(module), args.Get("keep"), folder.File("candidate.hlo")).Run();
  if (!smallest.ok()) return smallest.status();
  std::fprintf(stderr, "\r\033[K");
  std::printf("%s", ToText(**smallest).c_str());
  return absl::OkStatus();
}

}  // namespace

int ReduceCommand(const Arguments& args) { return ExitCode(Run(args)); }

}  // namespace kiln
