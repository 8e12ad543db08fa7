import { setTimeout as sleep } from 'node:timers/promises'

/** Milliseconds during which a refused request is sent again. */
const REFUSED_MAX = 60_000

/**
 * Sends a request to Elasticsearch, and again while its answer is 429: its heap is full for a moment, because test
 * files share one node. Returns every other answer.
 */
export const fetchFromElasticsearch = async (url: string, init: RequestInit): Promise<Response> => {
  const began = performance.now()
  for (;;) {
    const answer = await fetch(url, init)
    if (answer.status !== 429 || performance.now() - began >= REFUSED_MAX) return answer
    await answer.body?.cancel()
    await sleep(250)
  }
}
