// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the strings hold source code
/** Bugs in the patches of the Kafka client, in rights and in secrets in files: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const kafkaMutants: readonly Mutant[] = [
  {
    name: 'a right that every broker refuses is not reported',
    inside: 'passOnRefusedRights',
    find: '    if (answer === null && refused.length > 0) throw refused[0]\n',
    replace: '',
  },
  {
    name: 'one broker that refuses a right outweighs another one that answers',
    inside: 'passOnRefusedRights',
    find: 'answer === null && refused',
    replace: 'refused',
  },
  {
    name: 'metadata that no broker answers is a field of null, a defect',
    inside: 'refuseNoMetadata',
    find: '    if (answer === null) throw',
    replace: '    if (answer === undefined) throw',
  },
  {
    name: 'a request that waits for another one on its connection is never sent',
    inside: 'checkOnlyPendingRequests',
    find: 'if (this.pending.length > 0) scheduleCheckPendingRequests',
    replace: 'if (this.pending.length > 1) scheduleCheckPendingRequests',
  },
  {
    name: 'the queue of a connection at rest is looked at all the time',
    inside: 'checkOnlyPendingRequests',
    find: 'if (this.pending.length > 0) scheduleCheckPendingRequests',
    replace: 'scheduleCheckPendingRequests',
  },
  {
    name: 'a clock that is set back stops the heartbeats to Kafka',
    inside: 'measureWithMonotonicClock',
    find: 'now() - performance.now()',
    replace: '0',
  },
  {
    name: 'connections to a broker that no longer answers stay open',
    inside: 'closeAfterTimeout',
    find: '        void connection.disconnect()\n',
    replace: '',
  },
  {
    name: 'requests to a broker that no longer answers wait on',
    inside: 'closeAfterTimeout',
    find: '        connection.rejectRequests(closed)\n',
    replace: '',
  },
  {
    name: 'a broker that no longer answers does not count as lost',
    inside: 'closeAfterTimeout',
    find: '      throw closed\n',
    replace: '      throw error\n',
  },
  {
    name: 'a silent broker is asked again in place of the next one of the list',
    inside: 'closeAfterTimeout',
    find: 'sent.request.apiKey === API_VERSIONS',
    replace: 'sent.request.apiKey < 0',
  },
  {
    name: 'a silent broker may take the time of a long request for its first answer',
    inside: 'closeAfterTimeout',
    find: 'request.requestTimeout = requestTimeout',
    replace: 'request.requestTimeout ||= requestTimeout',
  },
  {
    name: 'a write does not wait for the refresh under way',
    inside: 'createRefresh',
    find: "    if (round.delay <= WRITES_HELD_MS) enter(round, { name: 'refreshing', held: attempt })\n",
    replace: '',
  },
  {
    name: 'a write waits for a refresh with a long delay',
    inside: 'createRefresh',
    find: "    if (round.delay <= WRITES_HELD_MS) enter(round, { name: 'refreshing', held: attempt })\n",
    replace: "    enter(round, { name: 'refreshing', held: attempt })\n",
  },
  {
    name: 'a broker that does not know a new topic yet ends commission topics',
    inside: 'untilKnown',
    find: 'if (!isUnknownTopic(error)) throw error',
    replace: 'throw error',
  },
  {
    name: 'the time at rest counts as time of work',
    inside: 'PartitionFlow.#keepDeciding',
    find: 'this.#catchUp.begin(this.#inOrder.writtenTo)',
    replace: 'this.#catchUp',
  },
  {
    name: 'the last records of many wait as long for their refresh as the first ones',
    inside: 'createRefresh',
    find: '      round.delay = delay\n      round.shortened.resolve()\n',
    replace: '',
  },
  {
    name: 'a write waits for a refresh without a limit',
    inside: 'createRefresh',
    find: 'await Promise.race([held.catch(() => undefined), steps.sleep(WRITES_HELD_MS)])',
    replace: 'await held.catch(() => undefined)',
  },
  {
    name: 'the API may open parked records',
    file: 'schemas/access.ts',
    inside: 'answered',
    find: "const answered: readonly Kind[] = [...listKinds, 'statements']",
    replace: 'const answered: readonly Kind[] = kinds',
  },
  {
    name: 'a role opens the indices of an installation with a longer prefix',
    inside: 'ofGenerations',
    find: '`/${prefix}-[a-z][a-z0-9]*-(${wanted',
    replace: '`/${prefix}-[a-z0-9-]*-(${wanted',
  },
  {
    name: 'the projector may write the topic of events',
    inside: 'readsTopic',
    find: 'const readsTopic = {\n',
    replace: "const readsTopic = {\n  Write: 'writes',\n",
  },
  {
    name: 'a secret keeps the end of the line of its file',
    inside: 'readSecretFile',
    find: 'readFile(path).toString().trimEnd()',
    replace: 'readFile(path).toString()',
  },
  {
    name: 'a secret in both forms is accepted',
    inside: 'secretsInFiles',
    find: "      problems.push({ name, expected: `no value, because ${setting} is set`, got: 'a value' })\n",
    replace: '',
  },
  {
    name: 'any setting may be in a file',
    inside: 'secretsInFiles',
    find: 'if (!secret || !path) continue',
    replace: 'if (!path) continue',
  },
  {
    name: 'an empty secret file is accepted',
    inside: 'secretsInFiles',
    find: "    else if (content === '') problems.push({ name, expected: 'a file that is not empty', got: JSON.stringify(path) })\n",
    replace: '',
  },
  {
    name: 'the first parked record with a code is no increase of its counter',
    inside: 'createProjectorMetrics',
    find: '    for (const code of parkCodes) parked.inc({ generation, stream, code }, 0)\n',
    replace: '',
  },
]
