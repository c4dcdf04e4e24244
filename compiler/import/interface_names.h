// What the front end calls the arguments and results of a program: "params['layers'][0]['w']", "result['logits']".
//
// What: StableHLO has them in the locations of arguments and in the attributes jax.arg_info and jax.result_info, HLO in
//   the metadata of parameters. Names of arguments go to Module::argument_names and to the parameters' metadata; those
//   of results travel as frontend attributes of the module (kiln.result.0="..."), so that HLO text keeps both.
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

}  // namespace kiln
