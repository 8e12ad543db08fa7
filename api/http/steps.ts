/**
 * Puts the steps of a request together, one around the other.
 * Promises: a step runs only after those that add what it needs: otherwise the types do not fit. Only this file changes
 *   what is known of a request.
 */
import type { Context } from './request.ts'

/** Does something with a request that has what it needs. Hands on what it adds, or answers the request itself. */
export type Step<Needs, Adds = void> = (ctx: Context<Needs>, next: (adds: Adds) => Promise<void>) => Promise<void>

type Rest<Known> = (ctx: Context<Known>) => Promise<void>
type With<Known, Adds> = Adds extends void ? Known : Omit<Known, keyof Adds> & Adds

type Steps<Given, Known> = {
  readonly step: <Adds = void>(step: Step<Known, Adds>) => Steps<Given, With<Known, Adds>>
  /** Ends with what answers the request. Returns all steps as one. */
  readonly end: (answer: Rest<Known>) => Rest<Given>
}

/** Begins with requests of which this much is given. */
export const startSteps = <Given>(): Steps<Given, Given> => after(rest => rest)

/** @param around puts all steps so far around the rest */
const after = <Given, Known>(around: (rest: Rest<Known>) => Rest<Given>): Steps<Given, Known> => ({
  step: <Adds>(step: Step<Known, Adds>) =>
    after<Given, With<Known, Adds>>(rest => around(async ctx => step(ctx, adds => rest(added(ctx, adds))))),
  end: around,
})

const added = <Known, Adds>(ctx: Context<Known>, adds: Adds): Context<With<Known, Adds>> => {
  Object.assign(ctx.state as object, adds)
  return ctx as unknown as Context<With<Known, Adds>>
}
