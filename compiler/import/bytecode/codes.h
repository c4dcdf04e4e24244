// Codes of the attributes and types that are more than a row of vhlo.def, in StableHLO's versioned dialect (VHLO) and
// in MLIR's builtin dialect. Source: VhloBytecode.cpp of StableHLO, BuiltinDialectBytecode.td of MLIR. Internal to
// compiler/import/bytecode.
#pragma once

namespace kiln::bytecode {

enum VhloAttribute {
  kArray = 1,
  kBoolean = 2,
  kApiVersion = 5,
  kDictionary = 6,
  kFloat = 8,
  kInteger = 9,
  kOutputOperandAlias = 10,
  kString = 14,
  kTensor = 15,
  kType = 17,
  kExtensions = 18,
  kResultAccuracy = 20
};
enum VhloType {
  kComplex = 1,
  kFunction = 8,
  kRankedTensor = 20,
  kRankedTensorExtended = 21,
  kToken = 22,
  kTuple = 23,
  kQuantized = 24,
  kQuantizedPerAxis = 30,
  kNone = 33
};
enum BuiltinAttribute {
  kBuiltinArray = 0,
  kBuiltinDictionary = 1,
  kBuiltinString = 2,
  kBuiltinSymbol = 4,
  kBuiltinType = 6,
  kBuiltinUnit = 7,
  kBuiltinInteger = 8,
  kBuiltinFloat = 9,
  kCallSiteLocation = 10,
  kFileLocation = 11,
  kFusedLocation = 12,
  kFusedLocationWithMetadata = 13,
  kNamedLocation = 14,
  kBuiltinDense = 18,
  kFileRangeLocation = 22
};
enum BuiltinType {
  kBuiltinIntegerType = 0,
  kBuiltinIndex = 1,
  kBuiltinBf16 = 3,
  kBuiltinF16 = 4,
  kBuiltinF32 = 5,
  kBuiltinF64 = 6,
  kBuiltinRankedTensor = 13
};

}  // namespace kiln::bytecode
