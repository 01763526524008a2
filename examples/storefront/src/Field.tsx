/** A field of a form: its label, its control, and its error message. */
import type { ReactNode } from 'react'

/** The attributes that connect a control with its label and its error message. */
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
  /** Content at the end of the line of the label. */
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
