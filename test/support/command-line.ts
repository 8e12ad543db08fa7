import { exitCodes } from '../../tools/failures.ts'
import { runProgram } from '../../tools/program.ts'

/** Runs a command line. Returns its action with options, its output and its exit code. */
export const said = async (...args: string[]) => {
  const called: unknown[] = []
  const text = { out: '', error: '' }
  const action = (name: string) => async (options: unknown) => {
    called.push(name, options)
    return exitCodes.notAll
  }
  const code = await runProgram(
    args,
    {
      list: action('list'),
      count: action('count'),
      show: action('show'),
      again: action('again'),
      createKey: action('createKey'),
      listKeys: action('listKeys'),
      revokeKey: action('revokeKey'),
      listGenerations: action('listGenerations'),
      status: action('status'),
      rebuild: action('rebuild'),
      verify: action('verify'),
      swap: action('swap'),
      rollback: action('rollback'),
      adopt: action('adopt'),
      rewind: action('rewind'),
      drop: action('drop'),
      exportOrganization: action('exportOrganization'),
      listSubjects: action('listSubjects'),
      reportSubject: action('reportSubject'),
      eraseSubject: action('eraseSubject'),
      showTotals: action('showTotals'),
      replay: action('replay'),
      diff: action('diff'),
      explain: action('explain'),
      listSandboxes: action('listSandboxes'),
      dropSandbox: action('dropSandbox'),
      validate: action('validate'),
      checkRules: action('checkRules'),
      doctor: action('doctor'),
      follow: action('follow'),
      reference: action('reference'),
      rotateKey: action('rotateKey'),
      upgradeKeys: action('upgradeKeys'),
      archive: action('archive'),
      verifyArchive: action('verifyArchive'),
      restore: action('restore'),
    },
    { out: more => (text.out += more), error: more => (text.error += more) },
  )
  return { called, code, ...text }
}
