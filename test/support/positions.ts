/** Watches the published position and time of each partition: neither may ever go back. */
import { type Position, readPosition } from './stored.ts'

export type Positions = {
  /** The last seen position of each partition; 0 before the first start. */
  readonly latest: () => readonly number[]
  readonly wentBack: () => readonly string[]
  readonly stop: () => Promise<void>
}

/** @param every milliseconds between two looks; a failed read is tried again */
export const watchPositions = (prefix: string, partitions: number, every: number): Positions => {
  const latest: Pick<Position, 'position' | 'time'>[] = Array.from({ length: partitions }, () => ({
    position: 0,
    time: 0,
  }))
  const wentBack: string[] = []
  let watching = true

  const look = async (partition: number): Promise<void> => {
    const seen = await readPosition(prefix, 'g1', partition)
    const before = latest[partition]
    for (const what of ['position', 'time'] as const) {
      if (before && seen[what] < before[what])
        wentBack.push(`${what} of ${partition}: ${before[what]}, then ${seen[what]}`)
    }
    latest[partition] = seen
  }
  const watch = async (): Promise<void> => {
    while (watching) {
      for (let partition = 0; partition < partitions; partition++) await look(partition).catch(() => undefined)
      await new Promise(resolve => setTimeout(resolve, every))
    }
  }
  const done = watch()
  return {
    latest: () => latest.map(({ position }) => position),
    wentBack: () => [...wentBack],
    stop: async () => {
      watching = false
      await done
    },
  }
}
