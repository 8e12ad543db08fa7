/** Bugs that would let a client that misbehaves hurt the API or other clients: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const GONE = 'test/flow/api-gone.test.ts'
const ATTACKS = 'test/simulation/hostile/hostile.test.ts'

export const hostileMutants: readonly Mutant[] = [
  {
    name: 'a multi-get that failed is sent again for a client that has left',
    file: 'api/elasticsearch/batch-multi-gets.ts',
    find: '    const group = asking.filter(isWaiting)\n',
    replace: '    const group = [...asking]\n',
  },
  {
    name: 'the failure of a multi-get that is sent again has no listener',
    file: 'api/elasticsearch/batch-multi-gets.ts',
    find: '      if (group.length === 1) first.resolve(await send(first.names, first.signal))\n',
    replace: '      if (group.length === 1) void send(first.names, first.signal).then(first.resolve)\n',
    flow: GONE,
  },
  {
    name: 'an overloaded Elasticsearch is asked again',
    file: 'api/elasticsearch/batch-multi-gets.ts',
    find: '(?:malformed_|too_large$)/',
    replace: '(?:malformed_|too_large$|overloaded$)/',
    flow: GONE,
  },
  {
    name: 'records that go together can be larger than an answer',
    file: 'api/elasticsearch/batch-multi-gets.ts',
    find: ' || records.size > RECORDS_SURE)',
    replace: ')',
  },
  {
    name: 'one document that cannot be read fails every request that went with it',
    file: 'api/elasticsearch/slice-documents.ts',
    find: "      at = sliceSmall(bytes, from).end\n      return { from, to: at, cut: 'unreadable' }\n",
    replace: "      throw unavailable('elasticsearch_partial')\n",
  },
  {
    name: 'a projector goes on after an error that nothing listened for',
    file: 'projector/unhandled-errors.ts',
    find: "  program.on('unhandledRejection', end)\n",
    replace: "  program.on('unhandledRejection', error => say(errorPlace(error)))\n",
  },
  {
    name: 'the message of an error that nothing listened for is logged',
    file: 'schemas/error-place.ts',
    find: 'return { error: error.name,',
    replace: 'return { error: String(error),',
  },
  {
    name: 'a client that leaves during a swap is answered as if the program had a defect',
    file: 'api/read/position.ts',
    find: '  return untilOver(promise, signal).finally(cancel)',
    replace: '  return promise.then(() => signal.throwIfAborted()).finally(cancel)',
  },
  {
    name: 'a connection that was to become a tunnel has no listener for its errors',
    file: 'api/http/server.ts',
    find: "    socket.on('error', () => socket.destroy())\n",
    replace: '',
  },
  {
    name: 'CONNECT is refused before the request in front of it is answered',
    file: 'api/http/server.ts',
    find: "    refuseNext(socket, 'invalid_request')\n",
    replace: "    refuse(socket, 'invalid_request')\n",
  },
  {
    name: 'the bytes of an answer that a client did not take are never given back',
    file: 'api/answer/deliver-answer.ts',
    find: '      cancel()\n      reservation.close()\n',
    replace: '      cancel()\n',
    flow: ATTACKS,
  },
  {
    name: 'a client may take as long as it likes for its answer',
    file: 'api/answer/deliver-answer.ts',
    find: '      req.socket.destroy()\n',
    replace: '',
    flow: ATTACKS,
  },
]
