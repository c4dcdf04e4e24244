#ifndef KILN_TESTS_LINK_ENTRIES_C_H_
#define KILN_TESTS_LINK_ENTRIES_C_H_

#ifdef __cplusplus
extern "C"
#endif
    const char*
    WhatIsWrongInC(void);

#endif  // KILN_TESTS_LINK_ENTRIES_C_H_
