/**
 * Bounds how far the heap grows between two collections. In: what each collection left. Out: the percentage by which V8
 * lets the heap grow before the next one.
 * Promises: V8 begins the next collection once the heap and the buffers outside it have grown by HEAP_GROWTH_BYTES, or
 *   by half where more is left or where many answers are held. So what the process remembers of many organizations is
 *   not multiplied. A small heap grows to four times its size: to mark it more often would cost more than the pages do.
 *   Nothing ends the process: the heap grows further if it must.
 *
 * By default, V8 marks the whole heap for every 64 MB of buffers, about every 70 pages.
 * `--external-memory-accounted-in-global-limit` counts them towards the heap's own limit.
 */
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { HEAP_GROWTH_BYTES, HEAP_GROWTH_PERCENT_MAX, HEAP_GROWTH_PERCENT_MIN } from './limits.ts'

type HeapGrowth = {
  /** Call it when the held answers become many, or few. */
  readonly holdMuch: (holds: boolean) => void
  /** Call it after a collection with the bytes that it left. */
  readonly collected: (left: number) => void
}

/** @param setPercent called at once, and with each change */
export const createHeapGrowth = (setPercent: (percent: number) => void): HeapGrowth => {
  let holdsMuch = false
  let percent = HEAP_GROWTH_PERCENT_MAX
  let given: number | undefined
  const give = (): void => {
    const next = holdsMuch ? HEAP_GROWTH_PERCENT_MIN : percent
    if (next !== given) setPercent(next)
    given = next
  }
  give()
  return {
    holdMuch: holds => {
      holdsMuch = holds
      give()
    },
    collected: left => {
      const fitting = Math.floor((100 * HEAP_GROWTH_BYTES) / left)
      percent = Math.min(HEAP_GROWTH_PERCENT_MAX, Math.max(HEAP_GROWTH_PERCENT_MIN, fitting))
      give()
    },
  }
}

/** Bounds the heap of this process. */
export const boundHeap = (): HeapGrowth['holdMuch'] => {
  setFlagsFromString('--external-memory-accounted-in-global-limit')
  const growth = createHeapGrowth(percent => setFlagsFromString(`--heap-growing-percent=${percent}`))
  const observer = new PerformanceObserver(list => {
    if (!list.getEntries().some(isOfWholeHeap)) return
    const { used_heap_size: heap, external_memory: buffers } = getHeapStatistics()
    growth.collected(heap + buffers)
  })
  observer.observe({ entryTypes: ['gc'] })
  return growth.holdMuch
}

const isOfWholeHeap = (collection: PerformanceEntry & { readonly detail?: { readonly kind?: number } }): boolean =>
  collection.detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR
