/** An animal as the catalogue shows it. */
import type { Pet, PetStatus } from '@petstore-catalogue/petstore/client'
import { Portrait } from './Portrait.tsx'
import { links } from './route.ts'
import { categoryOf, statusNames } from './shop.ts'

interface Props {
  pet: Pet
  /** The status by which the catalogue is filtered, to come back to. */
  filter: PetStatus | undefined
}

export function PetCard({ pet, filter }: Props) {
  const { name, species } = categoryOf(pet.categoryId)
  return (
    <a className={`card ${pet.status}`} href={links.pet(pet.id, filter)}>
      <Portrait species={species} name={pet.name} />
      <span className="name">{pet.name}</span>
      <span className="category">{name}</span>
      {/* That an animal can be had goes without saying. */}
      {pet.status !== 'available' && <Status status={pet.status} />}
    </a>
  )
}

export function Status({ status }: { status: PetStatus }) {
  return <span className={`status ${status}`}>{statusNames[status]}</span>
}
