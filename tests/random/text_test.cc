// The text of random modules: printing is a fixed point, what HLO text lets a writer leave out is understood, and the
// order in which a file lists instructions decides nothing.
#include <algorithm>
#include <random>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "aot/compile.h"
#include "compiler/hlo/infer.h"
#include "compiler/hlo/parser.h"
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"
#include "gtest/gtest.h"
#include "tests/random/generator.h"

namespace kiln {
namespace {

constexpr uint64_t kModules = 220, kArchives = 12;

std::vector<RandomOptions> Kinds() {
  std::vector<RandomOptions> out(4);
  out[1].devices = 4;
  out[2].dynamic = true;
  out[3].wide = true;
  return out;
}

std::unique_ptr<Module> Read(const std::string& text) {
  auto m = ParseHlo(text, "random.hlo");
  EXPECT_TRUE(m.ok()) << m.status() << "\n" << text;
  if (!m.ok()) return nullptr;
  EXPECT_TRUE(VerifyAsWritten(**m).ok()) << VerifyAsWritten(**m) << "\n" << text;
  return *std::move(m);
}

TEST(Text, PrintsAsItReads) {
  for (const RandomOptions& kind : Kinds())
    for (uint64_t seed = 0; seed < kModules; ++seed) {
      const std::string text = ToText(*RandomModule(seed, kind));
      const auto m = Read(text);
      ASSERT_TRUE(m) << "seed " << seed;
      ASSERT_EQ(ToText(*m), text) << "seed " << seed;
    }
}

// As `%name = SHAPE op(...)` without its shape, wherever operands and attributes say what it is.
std::string WithoutShapes(const Module& m, std::string text) {
  for (const auto& c : m.computations())
    for (const auto& i : c->instructions()) {
      const auto inferred = InferOmittedShape(*i);
      if (!inferred.ok() || i->Is(Opcode::Parameter) || i->Is(Opcode::Constant) || !(*inferred == i->shape())) continue;
      const std::string with =
          absl::StrCat("%", i->name(), " = ", i->shape().ToString(), " ", TextOf(i->opcode()), "(");
      const size_t at = text.find(with);
      if (at == std::string::npos) continue;
      text.replace(at, with.size(), absl::StrCat("%", i->name(), " = ", TextOf(i->opcode()), "("));
    }
  return text;
}

// Each leaves something out that readers of HLO text fill in.
std::vector<std::string> Forms(const Module& m, const std::string& text) {
  std::vector<std::string> out;
  out.push_back(WithoutShapes(m, text));
  out.push_back(absl::StrReplaceAll(text, {{"%", ""}}));
  out.push_back(absl::StrReplaceAll(text, {{"ENTRY ", ""}}));  // the last computation
  std::string bare;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t signature = line.find(" (");
    if (!line.empty() && line.back() == '{' && line[0] != ' ' && signature != absl::string_view::npos)
      absl::StrAppend(&bare, line.substr(0, signature), " {\n");
    else
      absl::StrAppend(&bare, line, "\n");
  }
  out.push_back(bare);
  std::string scalars;
  for (absl::string_view line : absl::StrSplit(text, '\n'))
    absl::StrAppend(&scalars,
                    line.find(" broadcast(") == absl::string_view::npos
                        ? std::string(line)
                        : absl::StrReplaceAll(line, {{", dimensions={}", ""}}),
                    "\n");
  out.push_back(scalars);
  return out;
}

TEST(Text, FormsMeanTheSame) {
  for (const RandomOptions& kind : Kinds())
    for (uint64_t seed = 0; seed < kModules; ++seed) {
      const auto module = RandomModule(seed, kind);
      const std::string text = ToText(*module);
      for (const std::string& form : Forms(*module, text)) {
        const auto m = Read(form);
        ASSERT_TRUE(m) << "seed " << seed;
        ASSERT_EQ(ToText(*m), text) << "seed " << seed << "\n" << form;
      }
    }
}

// Another order of the instructions that has operands before users.
void Shuffle(Module* m, uint64_t seed) {
  std::mt19937_64 rng(seed);
  for (const auto& c : m->computations()) {
    std::vector<Instruction*> order, ready;
    absl::flat_hash_map<const Instruction*, size_t> waits;
    for (const auto& i : c->instructions()) {
      const absl::flat_hash_set<const Instruction*> before(i->operands().begin(), i->operands().end());
      waits[i.get()] = before.size() + i->control_predecessors().size();
      if (waits[i.get()] == 0) ready.push_back(i.get());
    }
    while (!ready.empty()) {
      std::swap(ready[rng() % ready.size()], ready.back());
      Instruction* i = ready.back();
      ready.pop_back();
      order.push_back(i);
      for (const auto* next : {&i->users(), &i->control_successors()})
        for (Instruction* u : *next)
          if (--waits[u] == 0) ready.push_back(u);
    }
    c->Reorder(order);
  }
}

std::string ArchiveOf(std::unique_ptr<Module> m) {
  CompileOptions o;
  o.cpu.levels = {"v3"};
  auto compiled = Compile(std::move(m), o);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return compiled.ok() ? compiled->code.archive : "";
}

TEST(Text, OrderDecidesNothing) {
  for (uint64_t seed = 0; seed < kArchives; ++seed) {
    auto shuffled = RandomModule(seed);
    Shuffle(shuffled.get(), seed);
    const std::string text = ToText(*shuffled);
    ASSERT_NE(text, ToText(*RandomModule(seed)));
    ASSERT_TRUE(ArchiveOf(Read(text)) == ArchiveOf(RandomModule(seed))) << "seed " << seed;
  }
}

}  // namespace
}  // namespace kiln
