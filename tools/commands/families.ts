/** Help of the commands that have commands of their own. It stands here so that showing it loads nothing else. */

export const parkedHelp = `
Reads the projector's settings for Elasticsearch from the environment; publish-again also those for Kafka.
In a script use --json. Exit codes: 0 done; 1 it could not be done; 2 the command line is wrong;
3 publish-again: not every record is, or would be, applied.`

export const keysHelp = `
Reads the projector's settings for Kafka and Elasticsearch from the environment. Standard output has the key only: KEY=$(commission keys create --org org_1 --name Payroll). To revoke a key you need its id: --json prints both.
Exit codes: 0 done; 1 it could not be done; 2 the command line is wrong.`

export const subjectsHelp = `
Reads the projector's settings for Elasticsearch from the environment, and SEAL_KEYS_DIR, the directory of keys that the API reads. Prints no personal text.
erase refuses a seal key that also seals texts of others, unless you say --shared. A command that was killed is finished by the same command. Documents, Kafka and exports
are not changed: they have what was published, and nobody can open it any more. docs/privacy.md says what erasing does and does not do.
Exit codes: 0 done; 1 it could not be done; 2 the command line is wrong; 3 erase --confirm: the keys are destroyed, and texts that were published in the open stay readable.`

export const projectionHelp = `
Reads the projector's settings from the environment, KAFKA_GROUP_ID too. No command needs a restart: projectors keep up every generation that is
not dropped, and the API reads the live one with its next request.
Exit codes: 0 done; 1 it could not be done, or verify found a difference; 2 the command line is wrong; 3 diff found a difference.`

export const programHelp = `
A command reads the settings in the environment (docs/settings.md). commission COMMAND --help shows its options and its exit codes.
Exit codes of all: 0 done; 1 it could not be done; 2 the command line is wrong; 70 a defect; 130 stopped with Ctrl-C.`
