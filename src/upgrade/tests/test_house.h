/* test_house.h - a server that knows one pod and stands in for the API, in processes of its own. */
#ifndef DV_UPGRADE_TEST_HOUSE_H
#define DV_UPGRADE_TEST_HOUSE_H

#include <sys/types.h>

struct house {
    pid_t pid;
    unsigned port;
};

void house_open(struct house *house);
void house_close(struct house *house);

#endif
