/** Bugs in how answers are counted and delivered, and in how a process stops: see `mutants.ts`. */
import type { Mutant } from './mutant.ts'

export const answerMutants: readonly Mutant[] = [
  {
    name: 'an answer is given back to the budget before the client has it',
    file: 'api/answer/deliver-answer.ts',
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
    name: 'several large answers of an organization are read and made at once',
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
    name: 'bytes of a search beyond those expected count when all have come',
    file: 'api/elasticsearch/hold-reads.ts',
    find: '    reservation.add(arrived - reserved)\n',
    replace: '    reservation.add(0)\n',
  },
  {
    name: 'a long answer keeps memory that it grew into and did not fill',
    file: 'api/elasticsearch/client.ts',
    find: '      memory.resize(bytes)\n',
    replace: '',
  },
  {
    name: 'a request that waited too long among all organizations keeps the turn of its own',
    file: 'api/capacity/semaphore.ts',
    find: '        if (ofAll === undefined) one()\n',
    replace: '        if (ofAll !== undefined) one()\n',
  },
  {
    name: 'a large answer that is being made counts its own reads against its key',
    file: 'api/capacity/answer-budget.ts',
    find: 'hasTurn() ? mine : 0',
    replace: 'hasTurn() ? 0 : 0',
  },
  {
    name: 'connections that are kept idle turn new ones away',
    file: 'api/http/limit-connections.ts',
    find: '    oldest.destroy()\n',
    replace: '',
  },
  {
    name: 'ids of indices that Elasticsearch garbles fail as a defect of the API',
    file: 'api/elasticsearch/client.ts',
    find: '      return readIndexIds(answer)\n',
    replace: "      return indexIdsIn(JSON.parse(answer.toString('utf8')))\n",
  },
  {
    name: 'requests that a connection sends ahead begin at once',
    file: 'api/http/one-at-a-time.ts',
    find: '    if (waiting === undefined) {\n',
    replace: '    if (socket) {\n',
  },
  {
    name: 'one key may hold all bytes of answers',
    file: 'api/capacity/answer-budget.ts',
    find: " > ANSWERS_HELD_OF_KEY) return 'key'\n",
    replace: " > ANSWERS_HELD_MAX) return 'key'\n",
  },
  {
    name: 'an answer keeps the larger buffer that it is a part of',
    file: 'api/answer/deliver-answer.ts',
    find: 'deliver(ctx, compact(body), ',
    replace: 'deliver(ctx, body, ',
  },
  {
    name: 'the API stops to listen at once',
    file: 'api/main.ts',
    find: '    await sleep(drain)\n',
    replace: '',
    flow: 'test/flow/rolling-restart.test.ts',
  },
  {
    name: 'a log that nobody reads takes memory without end',
    file: 'schemas/bounded-log.ts',
    find: 'maxLength: LOG_BYTES_MAX, ',
    replace: '',
  },
  {
    name: 'the last lines of the log wait for their reader for ever',
    file: 'schemas/bounded-log.ts',
    find: "'EAGAIN' && now() < until) throw error",
    replace: "'EAGAIN') throw error",
    flow: 'test/flow/unread-logs.test.ts',
  },
  {
    name: 'a certificate is used whether or not its key fits',
    file: 'api/http/renew-certificate.ts',
    find: ' : whyUnfit(found)\n',
    replace: ' : undefined\n',
  },
]
