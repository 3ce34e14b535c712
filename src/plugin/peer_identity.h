/* peer_identity.h - who is at the other end of a socket: its user, groups, unit and executable. */
#ifndef DV_PLUGIN_PEER_IDENTITY_H
#define DV_PLUGIN_PEER_IDENTITY_H

struct dv_arena;
struct dv_policy_peer;
struct dv_stream;

/* Describes the peer, and leaves out what is not known; never NULL. Reads a few files of /proc. */
const struct dv_policy_peer *dv_peer_identify(const struct dv_stream *stream,
                                              struct dv_arena *arena);

#endif
