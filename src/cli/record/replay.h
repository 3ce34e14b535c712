/* replay.h - a recording is played back: as the driver that was recorded, or as the agent that
 * called it. */
#ifndef DV_CLI_REPLAY_H
#define DV_CLI_REPLAY_H

#include "cli/cli.h"

struct dv_tape;

/* Serves the recorded driver under cli->kubelet_dir, registers it there, and answers as recorded,
 * until davit is told to stop. */
enum dv_exit dv_replay_driver(struct dv_cli *cli, const struct dv_tape *tape);
/* Makes the recorded calls on the driver's socket, and prints where its answers differ.
 * DV_EXIT_REFUSED: some do. */
enum dv_exit dv_replay_kubelet(struct dv_cli *cli, const struct dv_tape *tape);

#endif
