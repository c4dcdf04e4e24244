// What the front end calls the arguments and results of a program: "params['layers'][0]['w']", "result['logits']".
//
// What: StableHLO has them in the locations of arguments and in the attributes jax.arg_info and jax.result_info, HLO in
//   the metadata of parameters. Names of arguments go to Module::argument_names and to the parameters' metadata; those
//   of results travel as frontend attributes of the module (kiln.result.0="..."), so that HLO text keeps both; so does
//   which results are sizes of bounded dimensions (kiln.size.0="1,0": dimension 0 of result 1).
// Guarantees: an empty list or name says nothing.
#pragma once

#include <string>
#include <vector>

#include "compiler/hlo/instruction.h"

namespace kiln {

// Names arguments by the metadata of HLO's parameters, if each has one and no two are alike.
void NameArgumentsByMetadata(Module* module);

// Does nothing if all are empty.
void SetResultNames(const std::vector<std::string>& names, Module* module);
std::vector<std::string> ResultNames(const Module& module);

// A dimension of a result, counted in arrays.
struct ResultDimension {
  int64_t result, dimension;
};
// The last results of the program are the sizes of these dimensions, one each.
void SetSizeResults(const std::vector<ResultDimension>& dimensions, Module* module);
std::vector<ResultDimension> SizeResults(const Module& module);

}  // namespace kiln
