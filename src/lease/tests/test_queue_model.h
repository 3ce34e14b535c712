/* test_queue_model.h - the queue of leases held against what it promises, for the random test and
 * the fuzzer: a script of bytes adds and removes requests, gives devices back, and has the queue
 * walked. */
#ifndef DV_TEST_QUEUE_MODEL_H
#define DV_TEST_QUEUE_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* Aborts when the queue breaks a promise. Returns how many requests went. */
size_t dv_test_queue_run(const uint8_t *script, size_t n);

#endif
