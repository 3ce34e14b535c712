/* dice.h - numbers at random that are the same for the same seed, on every machine. */
#ifndef DV_TESTS_DICE_H
#define DV_TESTS_DICE_H

#include <stdint.h>

struct dice {
    uint64_t state; /* begins as the seed */
};

/* 0 to sides - 1. The low bits of such a generator repeat soon: the high ones are taken. */
static inline unsigned roll(struct dice *dice, unsigned sides)
{
    dice->state = dice->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(dice->state >> 33) % sides;
}

#endif
