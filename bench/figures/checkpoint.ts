/**
 * The first checkpoint of an organization after a start of the API: it reads all changes. The client asks again while
 * the answer is 503, as often as `Retry-After` says.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSigningKey, textOfSigningKey } from '../../core/runtime/index.ts'
import { authorization, startApi } from '../processes/api-process.ts'
import type { Bench, FigureRow } from '../rig/bench.ts'

/** `pauses`: the part of the seconds in which the client waited before it asked again. */
export type FirstCheckpoint = { readonly seconds: number; readonly pauses: number; readonly refused: number }

export const measureCheckpoint = async (bench: Bench, prefix: string, key: string): Promise<FirstCheckpoint> => {
  const folder = await mkdtemp(join(tmpdir(), 'commission-bench-'))
  try {
    const file = join(folder, 'checkpoint.key')
    await writeFile(file, `${textOfSigningKey(createSigningKey('bench.example.com/checkpoints'))}\n`)
    await using api = await startApi(bench, prefix, bench.elasticsearch.url, { API_CHECKPOINT_KEY_FILE: file })
    const began = performance.now()
    let [pauses, refused] = [0, 0]
    for (;;) {
      const { status, headers } = await fetch(`${api.url}/checkpoint`, { headers: authorization(key) })
      if (status === 200) return { seconds: (performance.now() - began) / 1000, pauses, refused }
      if (status !== 503) throw new Error(`the API answers ${status} to a request for a checkpoint`)
      refused++
      const pause = Number(headers.get('retry-after'))
      pauses += pause
      await sleep(pause * 1000, undefined, { signal: bench.signal })
    }
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** @param size the number of payouts */
export const rowsOfCheckpoint = (size: string, { seconds, pauses, refused }: FirstCheckpoint): FigureRow[] => [
  { what: `${size}: first checkpoint after a start`, unit: 's', value: seconds },
  { what: `${size}: of it, pauses after 503`, unit: 's', value: pauses },
  { what: `${size}: requests for it that got 503`, unit: '', value: refused },
]
