/** A field of a form: its label, the control, and what is wrong with it. */
import type { ReactNode } from 'react'

/** What ties a control to its label and its problem. */
export interface Control {
  id: string
  className: string
  name: string
  'aria-invalid': boolean
  'aria-describedby': string
}

interface Props {
  label: string
  name: string
  problem: string | undefined
  /** What stands at the end of the label's line. */
  aside?: string
  children(control: Control): ReactNode
}

export function Field({ label, name, problem, aside, children }: Props) {
  const problemId = `${name}-problem`
  return (
    <div className="field">
      <div className="label">
        <label htmlFor={name}>{label}</label>
        {aside && <span className="hint">{aside}</span>}
      </div>
      {children({
        id: name,
        className: 'control',
        name,
        'aria-invalid': problem !== undefined,
        'aria-describedby': problemId,
      })}
      <p className="problem" id={problemId}>
        {problem}
      </p>
    </div>
  )
}
