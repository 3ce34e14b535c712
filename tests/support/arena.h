/* arena.h - setup and teardown of tests whose state is an arena, and nothing else. */
#ifndef DV_TESTS_ARENA_H
#define DV_TESTS_ARENA_H

int arena_start(void **state);
int arena_end(void **state);
#define arena_test(f) cmocka_unit_test_setup_teardown(f, arena_start, arena_end)

#endif
