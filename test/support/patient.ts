/** Requests of a busy machine: the time of one may be up. Its client asks again; any other refusal is the answer. */
import type { Answer, ServedApi } from './api.ts'
import { LATE } from './in-time.ts'

type Logged = Pick<ServedApi, 'logged'>

/** Whether an answer is the refusal of a request whose time was up. @param id its X-Request-Id */
export const wasLate = ({ logged }: Logged, id: string | null | undefined): boolean =>
  typeof id === 'string' &&
  logged.some(line => line.includes(id) && LATE.some(reason => line.includes(`"because":"${reason}"`)))

export const patient =
  ({ ask, logged }: Pick<ServedApi, 'ask'> & Logged): ((...given: Parameters<ServedApi['ask']>) => Promise<Answer>) =>
  async (...given) => {
    for (;;) {
      const answer = await ask(...given)
      if (answer.status !== 503 || !wasLate({ logged }, answer.headers.get('x-request-id'))) return answer
    }
  }
