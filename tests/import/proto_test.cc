// Protos of HLO against the text of the same module: what a field says must not be lost.
#include "compiler/hlo/printer.h"
#include "compiler/hlo/verify.h"
#include "compiler/import/import.h"
#include "gtest/gtest.h"

namespace kiln {
namespace {

// Of two parameters f32[4,8] and a call of a user's function, in memory order of its own and in place of the first.
constexpr char kProto[] = R"(
name: "m" entry_computation_name: "e" entry_computation_id: 1
computations { name: "e" id: 1 root_id: 3
  instructions { name: "x" opcode: "parameter" id: 1 parameter_number: 0
    shape { element_type: F32 dimensions: 4 dimensions: 8 layout { minor_to_major: 1 minor_to_major: 0 } } }
  instructions { name: "y" opcode: "parameter" id: 2 parameter_number: 1
    shape { element_type: F32 dimensions: 4 dimensions: 8 layout { minor_to_major: 1 minor_to_major: 0 } } }
  instructions { name: "r" opcode: "custom-call" id: 3 operand_ids: 1 operand_ids: 2 custom_call_target: "f"
    shape { element_type: F32 dimensions: 4 dimensions: 8 layout { minor_to_major: 0 minor_to_major: 1 } }
    constrain_layout: true
    operand_shapes_with_layout { element_type: F32 dimensions: 4 dimensions: 8
      layout { minor_to_major: 0 minor_to_major: 1 } }
    operand_shapes_with_layout { element_type: F32 dimensions: 4 dimensions: 8
      layout { minor_to_major: 1 minor_to_major: 0 } }
    output_operand_aliasing { operand_index: 0 }
    custom_call_schedule: 2 } }
buffer_donor { entries { parameter_number: 1 } }
)";

std::string TextOfProto(const std::string& text) {
  auto m = ImportHloProto(text, "m.pbtxt");
  if (!m.ok()) return std::string(m.status().message());
  const absl::Status s = VerifyAsWritten(**m);
  return s.ok() ? ToText(**m) : std::string(s.message());
}

TEST(Proto, CallsKeepTheirLayoutsAndAliases) {
  EXPECT_EQ(TextOfProto(kProto), R"(HloModule m, buffer_donor={ (1, {}) }

ENTRY %e (x: f32[4,8], y: f32[4,8]) -> f32[4,8] {
  %x = f32[4,8]{1,0} parameter(0)
  %y = f32[4,8]{1,0} parameter(1)
  ROOT %r = f32[4,8]{0,1} custom-call(%x, %y), custom_call_target="f", schedule=SCHEDULE_EARLIEST, operand_layout_constraints={f32[4,8]{0,1}, f32[4,8]{1,0}}, output_to_operand_aliasing={{}: (0, {})}
}
)");
}

TEST(Proto, ASchedule) {
  const std::string scheduled =
      TextOfProto(std::string(kProto) +
                  "schedule { sequences { key: 1 value { instruction_ids: 2 instruction_ids: 1 "
                  "instruction_ids: 3 } } }");
  EXPECT_NE(scheduled.find("is_scheduled=true"), std::string::npos) << scheduled;
  EXPECT_LT(scheduled.find("%y = "), scheduled.find("%x = ")) << scheduled;
  EXPECT_EQ(TextOfProto(std::string(kProto) + "schedule { sequences { key: 1 value { instruction_ids: 1 } } }"),
            "m.pbtxt:0:0: error: schedule: e has instructions that are not listed");
  EXPECT_EQ(TextOfProto(std::string(kProto) + "schedule { sequences { key: 7 } }"),
            "m.pbtxt:0:0: error: schedule: computation 7 is not defined");
}

TEST(Proto, ExtentsWithoutABoundAreDynamic) {
  std::string text = kProto;
  text.replace(text.find("dimensions: 4"), 13, "dimensions: -1");
  EXPECT_NE(TextOfProto(text).find("negative extent -1"), std::string::npos) << TextOfProto(text);
}

TEST(Proto, RaggedProducts) {
  const std::string text = TextOfProto(R"(
name: "m" entry_computation_id: 1
computations { name: "e" id: 1 root_id: 4
  instructions { name: "x" opcode: "parameter" id: 1 shape { element_type: F32 dimensions: 4 dimensions: 8 } }
  instructions { name: "y" opcode: "parameter" id: 2 parameter_number: 1
    shape { element_type: F32 dimensions: 2 dimensions: 8 dimensions: 3 } }
  instructions { name: "n" opcode: "parameter" id: 3 parameter_number: 2 shape { element_type: S32 dimensions: 2 } }
  instructions { name: "r" opcode: "ragged-dot" id: 4 operand_ids: 1 operand_ids: 2 operand_ids: 3
    shape { element_type: F32 dimensions: 4 dimensions: 3 }
    ragged_dot_dimension_numbers { lhs_ragged_dimensions: 0 rhs_group_dimensions: 0
      dot_dimension_numbers { lhs_contracting_dimensions: 1 rhs_contracting_dimensions: 1 } } } })");
  EXPECT_NE(
      text.find("ragged-dot(%x, %y, %n), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
                "rhs_group_dims={0}"),
      std::string::npos)
      << text;
}

}  // namespace
}  // namespace kiln
