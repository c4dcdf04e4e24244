#include "aot/tools/inputs.h"

#include "aot/tools/npy.h"
#include "compiler/base/text.h"

namespace kiln {

Shape Stacked(const Shape& row, int64_t rows) {
  Ints dims = row.dims();
  dims.insert(dims.begin(), rows);
  return Shape::Array(row.type(), dims);
}

absl::StatusOr<ImportOptions> SettleFromInputs(const std::vector<std::string>& files) {
  ImportOptions o;
  for (size_t k = 0; k < files.size(); ++k) {
    ASSIGN_OR_RETURN(std::string bytes, ReadFile(files[k]));
    ASSIGN_OR_RETURN(NpyArray array, ParseNpy(bytes, files[k]));
    o.argument_shapes.push_back(Shape::Array(PrimitiveType::F32, array.dims));
    if (Product(array.dims) != 1) continue;
    for (PrimitiveType t : {PrimitiveType::S32, PrimitiveType::S64, PrimitiveType::U32, PrimitiveType::U64})
      if (auto l = NpyLiteral(array, files[k], Shape::Array(t, array.dims)); l.ok())
        o.argument_values[static_cast<int64_t>(k)] = l->Get(0).i;
  }
  return o;
}

absl::StatusOr<std::vector<Literal>> ReadInputs(const std::vector<std::string>& files, const Module& module,
                                                bool rows) {
  std::vector<Shape> shapes;
  for (const Instruction* p : module.entry()->parameters())
    ForEachLeaf(p->shape(), [&](const ShapeIndex&, const Shape& s) {
      if (s.IsArray()) shapes.push_back(s);
    });
  std::vector<Literal> sizes;
  for (const auto& [number, value] : module.dimension_arguments)
    if (number >= static_cast<int64_t>(files.size()) && number < static_cast<int64_t>(shapes.size()))
      sizes.push_back(Literal::Int(shapes[number].type(), value));
  if (files.size() + sizes.size() != shapes.size())
    return InvalidArgument("error: ", files.size(), " inputs given, the module takes ", shapes.size());
  if (rows && !sizes.empty()) return InvalidArgument("error: replicas are given the sizes of their arrays too");
  std::vector<Literal> out;
  for (size_t k = 0; k < files.size(); ++k) {
    ASSIGN_OR_RETURN(Literal l, ReadNpy(files[k], rows ? Stacked(shapes[k], module.replica_count) : shapes[k]));
    out.push_back(std::move(l));
  }
  out.insert(out.end(), sizes.begin(), sizes.end());
  return out;
}

}  // namespace kiln
