/* Entry points of the commands, from commands.def. Each returns the exit status of the process. */
#ifndef SN_CLI_COMMANDS_H
#define SN_CLI_COMMANDS_H

#ifdef SONDE_MINIMAL
#define SN_COMMAND_FULL(name, summary)
#else
#define SN_COMMAND_FULL(name, summary) SN_COMMAND(name, summary)
#endif

#define SN_COMMAND(name, summary) int sn_command_##name(int argc, char **argv);
#include "cli/commands.def"
#undef SN_COMMAND

#endif
