/** Bugs in the budget and delivery of answers, and in the stop of a process: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const answerMutants: readonly Mutant[] = [
  {
    name: 'the budget counts an answer as delivered before the client has it',
    file: 'api/answer/limit-delivery.ts',
    find: '    onceDelivered(req, res, () => {\n',
    replace: '    reservation.close()\n    onceDelivered(req, res, () => {\n',
  },
  {
    name: 'Elasticsearch is asked before bytes are reserved',
    file: 'api/elasticsearch/hold-reads.ts',
    find: '  reservation.add(expected)\n  let reserved = expected\n',
    replace: '  let reserved = 0\n',
  },
  {
    name: 'several large answers of one organization are made at the same time',
    file: 'api/limits.ts',
    find: 'LARGE_ANSWERS_OF_ORGANIZATION = { permits: 1,',
    replace: 'LARGE_ANSWERS_OF_ORGANIZATION = { permits: 4,',
  },
  {
    name: 'an answer larger than expected is held while another request has the turn',
    file: 'api/elasticsearch/hold-reads.ts',
    find: '  if (!turn.tryNow(reservation.held() + answer.length)) return answer.length\n',
    replace: '',
  },
  {
    name: 'an answer larger than expected is read to its end while another request has the turn',
    file: 'api/elasticsearch/hold-reads.ts',
    find: "    if (needsTurn) throw unavailable('large_answers')\n",
    replace: '',
  },
  {
    name: 'bytes of a search beyond the expected ones are not reserved as they arrive',
    file: 'api/elasticsearch/hold-reads.ts',
    find: '    reservation.add(arrived - reserved)\n',
    replace: '    reservation.add(0)\n',
  },
  {
    name: 'a long answer keeps the unused end of its buffer',
    file: 'api/elasticsearch/client.ts',
    find: '      memory.resize(bytes)\n',
    replace: '',
  },
  {
    name: 'a request that waited too long for the permit of all organizations keeps the permit of its own',
    file: 'api/capacity/semaphore.ts',
    find: '        if (ofAll === undefined) one()\n',
    replace: '        if (ofAll !== undefined) one()\n',
  },
  {
    name: 'the reads of a large answer count against its key while the request has the turn',
    file: 'api/capacity/answer-budget.ts',
    find: 'hasTurn() ? mine : 0',
    replace: 'hasTurn() ? 0 : 0',
  },
  {
    name: 'idle connections make the server refuse new ones',
    file: 'api/http/limit-connections.ts',
    find: '    oldest.destroy()\n',
    replace: '',
  },
  {
    name: 'malformed index ids from Elasticsearch are answered as an internal error',
    file: 'api/elasticsearch/client.ts',
    find: '      return readIndexIds(requireAnswer(answer))\n',
    replace: "      return indexIdsIn(JSON.parse(requireAnswer(answer).toString('utf8')))\n",
  },
  {
    name: 'a node that answered that it cannot is asked again at once',
    file: 'api/elasticsearch/transport.ts',
    find: '        connectionPool.markDead(connection)\n',
    replace: '',
  },
  {
    name: 'a silent node is asked again and again',
    file: 'api/elasticsearch/transport.ts',
    find: ' && isSilentSince(asked, begun)) connectionPool.markDead(asked)\n',
    replace: ' && isSilentSince(asked, begun)) connectionPool.markAlive(asked)\n',
  },
  {
    name: 'a node is left out because of one slow read',
    file: 'api/elasticsearch/transport.ts',
    find: ' && isSilentSince(asked, begun)',
    replace: '',
  },
  {
    name: 'a node stays left out although no other one can answer',
    file: 'api/elasticsearch/transport.ts',
    find: '      if (others === 0) {\n        takeBack()\n',
    replace: '      if (others === 0) {\n',
  },
  {
    name: 'pipelined requests of one connection run at the same time',
    file: 'api/http/one-at-a-time.ts',
    find: '    if (waiting === undefined) {\n',
    replace: '    if (socket) {\n',
  },
  {
    name: 'one key may use the whole budget of answer bytes',
    file: 'api/capacity/answer-budget.ts',
    find: " > ANSWERS_HELD_OF_KEY) return 'key'\n",
    replace: " > ANSWERS_HELD_MAX) return 'key'\n",
  },
  {
    name: 'an answer keeps the larger buffer that it is a slice of',
    file: 'api/answer/limit-delivery.ts',
    find: 'deliver(ctx, compact(body), ',
    replace: 'deliver(ctx, body, ',
  },
  {
    name: 'the API stops listening at once on SIGTERM',
    file: 'api/main.ts',
    find: '    await sleep(drain)\n',
    replace: '',
    flow: 'test/flow/rolling-restart.long.test.ts',
  },
  {
    name: 'a log that nobody reads grows in memory without a limit',
    file: 'schemas/bounded-log.ts',
    find: 'maxLength: LOG_BYTES_MAX, ',
    replace: '',
  },
  {
    name: 'a process waits for ever for a reader of its last log lines',
    file: 'schemas/bounded-log.ts',
    find: "'EAGAIN' && elapsed() < deadline) throw error",
    replace: "'EAGAIN') throw error",
    flow: 'test/flow/unread-logs.test.ts',
  },
  {
    name: 'a certificate is used even if its key does not match',
    file: 'api/http/renew-certificate.ts',
    find: ' : whyUnfit(found)\n',
    replace: ' : undefined\n',
  },
]
