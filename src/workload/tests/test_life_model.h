/* test_life_model.h - pods at random on a node where anything may fail, and what must hold whatever
 * happens to them. */
#ifndef DV_WORKLOAD_TESTS_TEST_LIFE_MODEL_H
#define DV_WORKLOAD_TESTS_TEST_LIFE_MODEL_H

/* Where chance comes from: 0 to sides - 1. */
struct life_chooser {
    unsigned (*choose)(struct life_chooser *chooser, unsigned sides);
};

/* Leads one pod to its end. Aborts, with all that happened, when something does not hold:
 *
 * - there are never two running instances of a container
 * - nothing is released while a container runs, nothing cleaned up before it is released
 * - a terminal phase is told after the release, and never changes
 * - a container of a pod that never restarts is not started a second time
 * - without faults a deleted pod ends, and leaves nothing in the runtime
 * - nobody looks all the time */
void life_model_run(struct life_chooser *chooser);

#endif
