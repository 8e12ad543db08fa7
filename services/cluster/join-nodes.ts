/** The servers of a cluster behind one handle: each of them does what it is asked. */
import type { Service } from '../service.ts'

/** `address` has one address of each node. */
export const joinNodes = (
  name: string,
  nodes: readonly Service[],
): Service & { readonly nodes: readonly Service[] } => {
  const onAll = (act: (node: Service) => Promise<void>) => async (): Promise<void> =>
    void (await Promise.all(nodes.map(act)))
  return {
    name,
    address: nodes.map(({ address }) => address).join(),
    nodes,
    pid: undefined,
    folder: undefined,
    died: Promise.race(nodes.map(({ died }) => died)),
    stop: onAll(node => node.stop()),
    kill: onAll(node => node.kill()),
    freeze: onAll(node => node.freeze()),
    thaw: onAll(node => node.thaw()),
    restart: onAll(node => node.restart()),
    [Symbol.asyncDispose]: onAll(node => node[Symbol.asyncDispose]()),
  }
}
