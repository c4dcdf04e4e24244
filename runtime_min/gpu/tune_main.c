// main() of a tuning program. kiln renames kiln_model_*.
#include "runtime_min/gpu/tune.h"

int main(int argc, char** argv) { return kiln_model_tune(argc, argv); }
