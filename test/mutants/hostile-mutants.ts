/** Bugs that let a hostile client harm the API or other clients: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

const GONE = 'test/flow/api-gone.test.ts'
const SHARES = 'test/flow/api-shares.test.ts'
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
    find: '      if (group.length === 1) first.resolve(await sendAlone(first.names, first.signal, first.own))\n',
    replace: '      if (group.length === 1) void sendAlone(first.names, first.signal, first.own).then(first.resolve)\n',
    flow: GONE,
  },
  {
    name: 'a multi-get that Elasticsearch refused for overload is sent again',
    file: 'api/failures.ts',
    find: "  elasticsearch_overloaded: 'later',\n",
    replace: "  elasticsearch_overloaded: 'in parts',\n",
    flow: GONE,
  },
  {
    name: 'a batched multi-get can ask for more than one answer may hold',
    file: 'api/elasticsearch/batch-multi-gets.ts',
    find: ' || records.size > RECORDS_SURE ||',
    replace: ' ||',
  },
  {
    name: 'requests are read together however large their records are',
    file: 'api/elasticsearch/batch-multi-gets.ts',
    find: '    const all = await send(names, given.signal, { bytesMax: SMALL_ANSWER_BYTES })\n',
    replace: '    const all = await send(names, given.signal)\n',
    flow: SHARES,
  },
  {
    name: 'a large record of a group is read with the small ones again',
    file: 'api/elasticsearch/batch-multi-gets.ts',
    find: '      if (own > SMALL_ANSWER_BYTES) {\n',
    replace: '      if (own > Number.MAX_VALUE) {\n',
  },
  {
    name: 'a request that expects a large record is read with others',
    file: 'api/elasticsearch/batch-multi-gets.ts',
    find: 'inFlight === 0 || own.expected > SMALL_ANSWER_BYTES ?',
    replace: 'inFlight === 0 ?',
  },
  {
    name: 'a read that is refused for its size costs one unit, whatever arrived',
    file: 'api/access/limit-rate.ts',
    find: 'isTooLarge(error) ? (ctx.state.bytesRead ?? 0) : 0',
    replace: 'isTooLarge(error) ? 0 : 0',
  },
  {
    name: 'the bytes of a read that is repeated in its turn are not counted for a refusal',
    file: 'api/elasticsearch/hold-reads.ts',
    find: '    onRead(arrived)\n',
    replace: '    if (!needsTurn) onRead(arrived)\n',
  },
  {
    name: 'a record that is too large for the process refuses the key look-ups and pages of the same multi-get',
    file: 'api/elasticsearch/batch-multi-gets.ts',
    find: '      if (readsRecords(one) !== readsRecords(waiting[0] ?? one)) continue\n',
    replace: '',
  },
  {
    name: 'the memory of an answer is given back before the client has it',
    file: 'api/answer/limit-delivery.ts',
    find: 'if (!isPartOf(body, read)) free(read)',
    replace: 'free(read)',
  },
  {
    name: 'the memory of a delivered answer stays until the garbage collector comes',
    file: 'api/answer/limit-delivery.ts',
    find: '      if (res.writableFinished) free(body)\n',
    replace: '',
  },
  {
    name: 'one unreadable document fails all requests of the same multi-get',
    file: 'api/elasticsearch/slice-documents.ts',
    find: "      at = sliceSmall(bytes, from).end\n      return { from, to: at, slice: 'unreadable' }\n",
    replace: "      throw unavailable('elasticsearch_partial')\n",
  },
  {
    name: 'a projector continues after an unhandled rejection',
    file: 'projector/unhandled-errors.ts',
    find: "  program.on('unhandledRejection', end)\n",
    replace: "  program.on('unhandledRejection', error => onUnhandled(errorLocation(error)))\n",
  },
  {
    name: 'the message of an unhandled error is logged',
    file: 'schemas/error-location.ts',
    find: 'return { error: error.name,',
    replace: 'return { error: String(error),',
  },
  {
    name: 'a client that leaves during a swap causes an internal error',
    file: 'api/read/position.ts',
    find: '  return waitOrAbort(promise, signal).finally(cancel)',
    replace: '  return promise.then(() => signal.throwIfAborted()).finally(cancel)',
  },
  {
    name: 'the connection of a CONNECT request has no error listener',
    file: 'api/http/server.ts',
    find: "    socket.on('error', () => socket.destroy())\n",
    replace: '',
  },
  {
    name: 'CONNECT is refused before the request before it is answered',
    file: 'api/http/server.ts',
    find: "    refuseNext(socket, 'invalid_request')\n",
    replace: "    refuse(socket, 'invalid_request')\n",
  },
  {
    name: 'the bytes of an answer that its client did not read are never released',
    file: 'api/answer/limit-delivery.ts',
    find: '      if (res.writableFinished) free(body)\n      reservation?.close()\n',
    replace: '      if (res.writableFinished) free(body)\n',
    flow: ATTACKS,
  },
  {
    name: 'a client has no time limit to read its answer',
    file: 'api/answer/limit-delivery.ts',
    find: '      req.socket.destroy()\n',
    replace: '',
    flow: ATTACKS,
  },
  {
    name: 'a request that leaves before its answer postpones the next read of the times of partitions at rest',
    file: 'api/read/times-cache.ts',
    find: '      let isRecent = true\n',
    replace: '      let isRecent = true\n      recent.add(generation)\n',
  },
  {
    name: 'a remembered cursor of any age makes the common search for changes begin there',
    file: 'api/read/watch-changes.ts',
    find: '    ttl: LAST_CURSOR_AGE_MAX,\n',
    replace: '',
  },
  {
    name: 'a wait with a filter searches at each change of its organization',
    file: 'api/read/watch-changes.ts',
    find: 'begun + FIND_INTERVAL',
    replace: 'begun',
  },
  {
    name: 'a sum of totals holds all amounts of the organization until its end',
    file: 'api/read/read-totals.ts',
    find: '      await each(all.buckets)\n',
    replace: "      signal.addEventListener('abort', () => void all)\n      await each(all.buckets)\n",
  },
]
